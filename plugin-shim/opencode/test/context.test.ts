import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"
import { Contexts } from "../src/context.ts"
import { sleep } from "../src/pump.ts"
import type { Json } from "../src/wire.ts"
import { HostDouble } from "./host-double.ts"

type Link = ConstructorParameters<typeof Contexts>[0]

const S = "ses_1"
let asked: Json[]
let answer: (n: number) => Promise<Json | null>
let link: { -readonly [K in keyof Link]: Link[K] }
let children: Set<string>
let contexts: Contexts
let host: HostDouble
const TITLE = "You are a title generator. You output ONLY a thread title."
const COMPACT = "You are an anchored context summarization agent."

beforeEach(() => {
  asked = []
  answer = async (n) => ({ text: `Points ${n}` })
  children = new Set()
  link = {
    connected: true,
    state: { gate: false, gate_ms: 1000, context: true },
    flushed: async () => true,
    ask: async (what: string, data: Json) => answer(asked.push({ what, ...data })),
  }
  host = new HostDouble()
  host.agents = [
    { name: "build", mode: "primary" },
    { name: "mine", mode: "primary", prompt: "You are a writer who summarizes what others wrote." },
    { name: "title", mode: "primary", hidden: true, prompt: TITLE },
    { name: "compaction", mode: "primary", hidden: true, prompt: COMPACT },
    { name: "reflectd-judge", mode: "subagent", hidden: true },
  ]
  const tracker = { isChild: (id: string) => children.has(id), isJudge: (id: string) => id === "judge" }
  contexts = new Contexts(link, tracker, host.client)
})

async function request(id = S, first = "You are opencode."): Promise<string[]> {
  const system = [first]
  await contexts.system(id, system)
  return system.slice(1)
}

// shows: LEARN-07
test("the same bytes in each request of a session, asked for once", async () => {
  contexts.heard(S)
  assert.deepEqual(
    [await request(), await request(), await request()],
    [["Points 1"], ["Points 1"], ["Points 1"]],
  )
  contexts.heard(S)
  assert.deepEqual(await request(), ["Points 1"])
  assert.deepEqual(asked, [{ what: "context", sessionID: S }])
})

test("requests at the same time get the same", async () => {
  assert.deepEqual(await Promise.all([request(), request()]), [["Points 1"], ["Points 1"]])
})

test("after a compaction it is asked for again", async () => {
  await request()
  contexts.renew(S)
  assert.deepEqual(await request(), ["Points 2"])
})

test("a daemon that is slow is not waited for, and the session goes without from then on", async () => {
  let give: (text: Json) => void = () => {}
  answer = () => new Promise((resolve) => (give = resolve))
  const before = Date.now()
  assert.deepEqual(await request(), [])
  assert.ok(Date.now() - before < 5000)
  give({ text: "late" })
  await sleep(1)
  assert.deepEqual(await request(), [])
})

test("titles, summaries, judges and sub-agents get nothing", async () => {
  children.add("child")
  for (const [id, first] of [
    [S, TITLE],
    [S, `${COMPACT}\nAnswer in German.`],
    ["judge", "You are opencode."],
    ["child", "You are opencode."],
    ["", "You are opencode."],
  ] as const)
    assert.deepEqual(await request(id, first), [], first)
  assert.deepEqual(asked, [])
})

test("a person's own agent has it, whatever its prompt says", async () => {
  assert.deepEqual(await request(S, "You are a writer who summarizes what others wrote.\n<env>"), [
    "Points 1",
  ])
  assert.equal(host.named("agents").length, 1)
})

test("the agents are asked for again until the host lists them", async () => {
  const { agents } = host
  host.agents = undefined as unknown as Json[]
  assert.deepEqual(await request(), ["Points 1"])
  host.agents = agents
  assert.deepEqual(await request(S, TITLE), [])
})

// shows: I40
test("switched off and on again, the next request has nothing, and the one after has it", async () => {
  assert.deepEqual(await request(), ["Points 1"])
  answer = async () => ({ text: "" })
  contexts.renew(S)
  assert.deepEqual(await request(), [])
  answer = async (n) => ({ text: `Points ${n}` })
  contexts.renew(S)
  assert.deepEqual(await request(), ["Points 3"])
})

// shows: I34, I35
test("switched off, without a daemon, or with an empty answer nothing changes", async () => {
  link.connected = false
  assert.deepEqual(await request("a"), [])
  link.connected = true
  link.state = { ...link.state, context: false }
  assert.deepEqual(await request("b"), [])
  link.state = { ...link.state, context: true }
  answer = async () => null
  assert.deepEqual(await request("c"), [])
  answer = async () => ({ text: 7 })
  assert.deepEqual(await request("d"), [])
})
