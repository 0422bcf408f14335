import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"
import { Lessons } from "../src/lessons.ts"
import { isHuman, projectMessages } from "../src/project.ts"
import type { Json } from "../src/wire.ts"

type Link = ConstructorParameters<typeof Lessons>[0]

const S = "ses_1"
const LESSON =
  "Lesson from Episode Memory\nPast experience from similar query suggests: Write answer.txt first."
let asked: Json[]
let answer: (n: number) => Promise<Json | null>
let link: { -readonly [K in keyof Link]: Link[K] }
let children: Set<string>
let lessons: Lessons

beforeEach(() => {
  asked = []
  answer = async () => ({ text: LESSON })
  children = new Set()
  link = {
    connected: true,
    state: { gate: false, gate_ms: 1000, context: false, lessons: 60, late_lessons: 20 },
    flushed: async () => true,
    ask: async (what: string, data: Json) => answer(asked.push({ what, ...data })),
  }
  lessons = new Lessons(link, { isChild: (id) => children.has(id), isJudge: (id) => id === "judge" })
})

const typed = (): Json[] => [{ id: "prt_208ea76960011abcdefghijklm", type: "text", text: "Fix the parser" }]

async function prompted(message = "msg_1", session = S): Promise<Json[]> {
  const parts = typed()
  await lessons.prompted(session, message, parts)
  return parts.slice(1)
}

interface Output {
  output: string
  metadata: Json
}

async function acted(callID = "c1", sessionID = S): Promise<Output> {
  const output = { title: "", output: "1 failed", metadata: { exit: 1 } }
  await lessons.acted({ tool: "bash", sessionID, callID, args: { command: "make test" } }, output)
  return output
}

const never = () => new Promise<null>(() => {})

test("a lesson is one more part of the person's message, which stays theirs and no request has", async () => {
  const parts = typed()
  await lessons.prompted(S, "msg_1", parts)
  const [person, ours] = parts
  assert.equal(person?.["text"], "Fix the parser")
  assert.deepEqual(
    { ...ours, id: "" },
    {
      ...{ id: "", sessionID: S, messageID: "msg_1", type: "text", text: LESSON, synthetic: true },
      ...{ ignored: true, metadata: { reflectd: { given: true } } },
    },
  )
  assert.ok(String(ours?.["id"]) > String(person?.["id"]), "behind it")
  assert.ok(isHuman(parts))
  assert.deepEqual(asked, [{ what: "lessons", sessionID: S, messageID: "msg_1", text: "Fix the parser" }])
})

test("only the agent's requests are shown a lesson: not the title, not the summary of a compaction", async () => {
  const parts = typed()
  await lessons.prompted(S, "msg_1", parts)
  const title = [{ info: { id: "msg_1", role: "user", sessionID: S }, parts }]
  const seen = (messages: Json[]) =>
    messages.flatMap((message) => message["parts"] as Json[]).filter((part) => part["ignored"] !== true)
      .length
  const request = async () => {
    const messages = [...title]
    await lessons.requested(messages)
    return [seen(messages), seen(title)]
  }
  assert.deepEqual(
    [await request(), await request()],
    [
      [2, 1],
      [2, 1],
    ],
  )
  lessons.compacting(S)
  assert.deepEqual(
    [await request(), await request()],
    [
      [1, 1],
      [2, 1],
    ],
  )
})

test("what nobody typed is not asked about", async () => {
  const parts = [...typed(), { type: "text", text: "a file's content", synthetic: true }]
  await lessons.prompted(S, "msg_1", parts)
  assert.equal(asked[0]?.["text"], "Fix the parser")
})

test("a message is asked about once, however often the plugin is loaded", async () => {
  await prompted()
  assert.deepEqual(await prompted(), [])
  assert.equal(asked.length, 1)
})

test("a lesson stands behind a result; nothing that a tool says of itself hides its output", async () => {
  const { output, metadata } = await acted()
  assert.equal(output, `1 failed\n\n${LESSON}`)
  assert.deepEqual(asked, [{ what: "late_lessons", sessionID: S, callID: "c1" }])
  assert.deepEqual(metadata, { exit: 1 })
  const forged = { ...metadata, reflectd: { added: 100 } }
  const state = { status: "completed", input: {}, output, metadata: forged }
  const stored = [
    { info: { id: "m1", role: "user" }, parts: typed() },
    {
      info: { id: "m2", role: "assistant" },
      parts: [{ type: "tool", id: "p", callID: "c1", tool: "bash", state }],
    },
  ]
  const read = JSON.stringify(projectMessages(stored))
  assert.ok(read.includes(JSON.stringify(`1 failed\n\n${LESSON}`)), read)
})

test("the daemon is told which model answers", async () => {
  await lessons.prompted(S, "msg_1", typed(), "acme/large")
  assert.equal(asked[0]?.["model"], "acme/large")
})

test("a daemon that hangs is waited for, for a moment", async () => {
  link.flushed = (ms: number) => new Promise((resolve) => setTimeout(() => resolve(false), ms))
  answer = never
  link.ask = async (_what: string, _data: Json, ms: number) =>
    Promise.race([never(), new Promise<null>((resolve) => setTimeout(() => resolve(null), ms))])
  assert.deepEqual(await prompted(), [])
  assert.deepEqual(await acted(), { title: "", output: "1 failed", metadata: { exit: 1 } })
})

test("a daemon that hears of the session late is asked all the same, and the lesson stands behind a result", async () => {
  link.flushed = () => new Promise((resolve) => setTimeout(() => resolve(true), 150))
  assert.deepEqual([await prompted(), asked], [[], []])
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal(asked[0]?.["what"], "lessons")
  assert.equal((await acted()).output, `1 failed\n\n${LESSON}`)
  assert.equal(asked.length, 1)
  assert.deepEqual((await acted("c2")).output, `1 failed\n\n${LESSON}`, "then the daemon is asked again")
  assert.equal(asked[1]?.["what"], "late_lessons")
})

test("an answer that is late for its call stands behind the next result, and is asked for once", async () => {
  answer = async () => {
    await new Promise((resolve) => setTimeout(resolve, 150))
    return { text: LESSON }
  }
  const atOnce = await Promise.all([acted("c1"), acted("c2")])
  assert.deepEqual(
    [...atOnce, await acted("c3")].map(({ output }) => output),
    Array(3).fill("1 failed"),
  )
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal((await acted("c4")).output, `1 failed\n\n${LESSON}`)
  assert.deepEqual(asked, [{ what: "late_lessons", sessionID: S, callID: "c1" }])
})

test("of two results at once one has the lesson", async () => {
  const outputs = (await Promise.all([acted("c1"), acted("c2")])).map(({ output }) => output)
  assert.deepEqual(outputs.sort(), ["1 failed", `1 failed\n\n${LESSON}`])
  assert.equal(asked.length, 1)
})

test("a prompt's answer that is late for it stands behind the first result", async () => {
  answer = async () => {
    await new Promise((resolve) => setTimeout(resolve, 150))
    return { text: LESSON }
  }
  assert.deepEqual(await prompted(), [])
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal((await acted()).output, `1 failed\n\n${LESSON}`)
})

test("what comes late for a prompt is given to no later one", async () => {
  link.flushed = () => new Promise((resolve) => setTimeout(() => resolve(true), 150))
  answer = async (n) => ({ text: n === 1 ? LESSON : "" })
  assert.deepEqual([await prompted(), await prompted("msg_2")], [[], []])
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.deepEqual([asked.length, (await acted()).output], [2, "1 failed"])
})

test("nothing while it is off, without a daemon, for sub-agents and judges", async () => {
  const state = link.state
  link.state = { gate: false, gate_ms: 1000, context: false }
  assert.deepEqual([await prompted(), (await acted()).output], [[], "1 failed"])
  link.state = state
  link.connected = false
  assert.deepEqual([await prompted("m2"), (await acted("c2")).output], [[], "1 failed"])
  link.connected = true
  children.add(S)
  assert.deepEqual([await prompted("m3"), (await acted("c3")).output], [[], "1 failed"])
  assert.deepEqual(await prompted("m4", "judge"), [])
  assert.deepEqual(asked, [])
})

test("nothing given changes nothing; a text that is too long is none of ours", async () => {
  for (const text of ["", "x".repeat(5000), 7]) {
    answer = async () => ({ text }) as Json
    assert.deepEqual(await prompted(`m${text}`), [])
    assert.deepEqual((await acted(`c${text}`)).metadata, { exit: 1 })
  }
})
