/** The plugin as opencode 2 would load it, with a real socket and the replayed host. */
import assert from "node:assert/strict"
import { afterEach, beforeEach, test } from "node:test"
import plugin from "../../src/index.ts"
import type { Calls } from "../../src/v2/calls.ts"
import type { Json } from "../../src/wire.ts"
import { DaemonDouble, until } from "../daemon-double.ts"
import { CHILD, ContextDouble, events, WORK } from "./double.ts"
import type { Event } from "./double.ts"

let daemon: DaemonDouble
let host: ContextDouble
let opened: (() => Promise<void>)[]
const saved = { ...process.env }

beforeEach(async () => {
  daemon = await new DaemonDouble().start()
  host = new ContextDouble(daemon.folder)
  opened = []
  process.env["REFLECTD_SOCKET"] = daemon.socket
  process.env["REFLECTD_NO_START"] = "1"
})

afterEach(async () => {
  for (const close of opened) await close()
  await daemon.remove()
  for (const key of ["REFLECTD_SOCKET", "REFLECTD_NO_START", "REFLECTD_CHILD"]) {
    delete process.env[key]
    if (saved[key] !== undefined) process.env[key] = saved[key]
  }
})

/** Load the plugin, as far as that opencode waits for it. */
function load(context: unknown = host): () => Promise<void> {
  const close = plugin.setup(context)
  assert.ok(close)
  opened.push(close)
  return close
}

async function loaded(context: unknown = host): Promise<() => Promise<void>> {
  const close = load(context)
  await until(() => daemon.listening)
  return close
}

const of = (session: string) => daemon.events.filter(({ data }) => data["sessionID"] === session)
const idles = (session = WORK) => of(session).filter(({ kind }) => kind === "session.idle")

async function carriedOut(order: Json): Promise<Json> {
  daemon.order({ id: "o", session: WORK, data: {}, ...order })
  const { id = "o" } = order
  const found = () => daemon.results.find((result) => result.id === id)
  await until(() => found() !== undefined)
  return { ...found() } as Json
}

const feedback = { kind: "feedback", data: { text: "go on" } }

test("loading returns at once, and says that nobody knows what opencode was started as", async () => {
  host.instead["event.subscribe"] = () => new Promise(() => {}) as unknown as AsyncIterable<unknown>
  host.instead["session.hook"] = () => new Promise(() => {})
  await loaded()
  const { mode, directory } = daemon.hellos[0] as Json
  assert.deepEqual([mode, directory], ["unknown", daemon.folder])
})

// shows: I9
test("REFLECTD_CHILD=1 means that nothing is begun", () => {
  process.env["REFLECTD_CHILD"] = "1"
  assert.equal(plugin.setup(host), undefined)
  assert.equal(host.streams, 0)
})

test("a recorded turn, feedback through session.synthetic with an id of ours, and the answer to it", async () => {
  await loaded()
  host.say(...events("tool turn"))
  await until(() => idles().length === 1)
  const turn = "msg_202d1d159001QhC2MKKtJylW0c"
  const result = await carriedOut({ ...feedback, id: "rfl_1a", if: { task: "", turn } })
  assert.equal(result["status"], "done")
  assert.deepEqual(host.named("session.synthetic"), [
    {
      sessionID: WORK,
      id: "msg_rfl1a",
      text: "go on",
      description: "reflectd",
      metadata: { reflectd: { order: "rfl_1a", kind: "feedback" } },
      delivery: "steer",
    },
  ])
  const [enqueued, ...rest] = events("feedback by the plugin")
  const metadata = { reflectd: { order: "rfl_1a", kind: "feedback" } }
  const item = { type: "synthetic", payload: { text: "go on", metadata } }
  host.say({ ...enqueued, data: { ...enqueued?.data, item } } as Event, ...rest)
  await until(() => idles().length === 2)
  const [told] = of(WORK).filter(({ kind }) => kind === "chat.message")
  assert.deepEqual([told?.data["human"], told?.data["order"]], [false, "rfl_1a"])
})

// shows: I10, I11, I14
test("at work, stopped, or with a newer message of the person, the session is not prompted", async () => {
  await loaded()
  const only = (task: string) => ({ if: { task, turn: "" } })
  const abort = events("abort by a person")
  host.say(...abort.slice(0, 5))
  await until(() => of(WORK).length > 2)
  const [first, queued] = ["msg_202d1d2d3001tNJpWv5QIQtzMr", "msg_202d20d650012x03jbOfOjR9Eg"]
  assert.equal((await carriedOut({ ...feedback, id: "a", ...only(first) }))["error"], "busy")
  host.say(...abort.slice(5))
  await until(() => idles().length === 1)
  assert.equal(
    (await carriedOut({ ...feedback, id: "b", ...only(first) }))["error"],
    "a person stopped the agent or took messages back",
  )
  host.say(...events("busy: steer then queue"))
  await until(() => idles().length === 2)
  assert.equal((await carriedOut({ ...feedback, id: "c", ...only(first) }))["error"], "a newer human message")
  assert.equal((await carriedOut({ ...feedback, id: "d", ...only(queued) }))["status"], "done")
  assert.equal(host.named("session.synthetic").length, 1)
})

test("an agent that may change nothing is told with the messages that it answered", async () => {
  await loaded()
  const typed = { type: "user", id: "msg_1", text: "do it", time: { created: 1 } }
  for (const [agent, readonly] of [
    ["plan", true],
    ["build", undefined],
    ["unknown", undefined],
  ]) {
    const answer = {
      type: "assistant",
      id: "msg_2",
      agent,
      content: [],
      finish: "stop",
      time: { created: 2 },
    }
    host.messages.set(WORK, [typed, answer])
    const { data } = await carriedOut({ kind: "read", id: `as ${agent}` })
    assert.equal((data as Json)["readonly"], readonly)
  }
})

test("messages that a person took back: the daemon is told, and the session is not prompted", async () => {
  await loaded()
  host.say(...events("tool turn"))
  await until(() => idles().length === 1)
  host.sessions.set(WORK, { ...host.sessions.get(WORK), revert: { messageID: "msg_1" } })
  const { data } = await carriedOut({ kind: "read", id: "r" })
  assert.equal((data as Json)["undone"], true)
  const sent = await carriedOut({ ...feedback, if: { task: "msg_1", turn: "" } })
  assert.equal(sent["status"], "stale")
})

test("the messages are read, with the sub-agent's parent; a session that is gone is missing", async () => {
  await loaded()
  host.messages.set(WORK, [{ type: "user", id: "msg_1", text: "do it", time: { created: 1 } }])
  const read = async (session: string) => {
    const { data } = await carriedOut({ kind: "read", id: `read ${session}`, session })
    return data as Json
  }
  const work = await read(WORK)
  assert.deepEqual([work["missing"], work["busy"], work["todos"]], [false, false, []])
  assert.equal((work["messages"] as Json[]).length, 1)
  const { parentID, directory } = (await read(CHILD))["session"] as Json
  assert.deepEqual([parentID, directory], [WORK, daemon.folder])
  assert.equal((await read("ses_gone"))["missing"], true)
  host.instead["session.get"] = async () => Promise.reject({ _tag: "UnknownError", message: "broken" })
  const failed = await carriedOut({ kind: "read", id: "again" })
  assert.deepEqual([failed["status"], failed["error"]], ["failed", "UnknownError: broken"])
})

const evaluate = {
  kind: "evaluate",
  data: {
    system: "rules",
    text: "case",
    model: { providerID: "fake", modelID: "fake-1" },
    timeout_ms: 60_000,
  },
}

test("the judge is one text that the host's model makes, without a session", async () => {
  await loaded()
  const { data } = await carriedOut(evaluate)
  assert.deepEqual(data, { text: "verdict", model: { providerID: "fake", modelID: "fake-1" } })
  assert.deepEqual(host.named("generate.text"), [
    { prompt: "rules\n\ncase", model: { providerID: "fake", id: "fake-1" } },
  ])
  assert.equal(host.named("session.create").length, 0)
})

// shows: I1, I37
test("without that call it is a session that may do nothing, announced first and removed", async () => {
  host = new ContextDouble(daemon.folder, ["generate.text"])
  await loaded()
  const seen: unknown[] = []
  host.instead["session.wait"] = async () => {
    for (const sessionID of ["ses_made1", WORK]) {
      const event = { sessionID, system: [{ type: "text", text: "base" }], tools: { shell: {}, edit: {} } }
      host.hooks.get("context")?.(event)
      seen.push([event.system.map(({ text }) => text), Object.keys(event.tools)])
    }
  }
  const { data } = await carriedOut(evaluate)
  assert.deepEqual((data as Json)["text"], "verdict")
  assert.deepEqual(seen, [
    [["You are a strict judge."], []],
    [["base"], ["shell", "edit"]],
  ])
  assert.deepEqual(
    of("ses_made1").map(({ kind }) => kind),
    ["judge.created"],
  )
  const title = "[reflectd judge]"
  assert.deepEqual(host.named("session.create"), [
    { title, permissions: [{ action: "*", resource: "*", effect: "deny" }] },
  ])
  assert.deepEqual(host.named("session.prompt"), [
    { sessionID: "ses_made1", prompt: { text: "rules\n\ncase" } },
  ])
  assert.equal(host.named("session.switchModel").length, 1)
  assert.ok(!host.sessions.has("ses_made1"))
})

const BASE = "You are opencode."

/** The daemon offers points: another text each time that it is asked. */
function learns(): void {
  daemon.state = { ...daemon.state, context: true }
  let asked = 0
  daemon.answer = async ({ what }) => (what === "context" ? { text: `Points ${++asked}` } : {})
}

// shows: LEARN-07
test("what was learned is one system text more, the same in each request until a compaction", async () => {
  learns()
  await loaded()
  host.say(...events("busy: steer then queue"))
  await until(() => idles().length === 1 && daemon.asks.length === 1)
  for (let n = 0; n < 3; n++) assert.deepEqual(await host.request(WORK), [BASE, "Points 1"])
  assert.deepEqual(
    daemon.asks.map(({ what, data }) => [what, data]),
    [["context", { sessionID: WORK }]],
  )
  host.say({ id: "c", type: "session.compaction.ended", data: { sessionID: WORK } })
  await until(() => daemon.asks.length === 2)
  assert.deepEqual(await host.request(WORK), [BASE, "Points 2"])
  assert.ok(daemon.kinds().includes("session.compacted"))
})

test("the hook can come before the events that tell of the session; two loads add the text once", async () => {
  learns()
  await loaded()
  const newer = new ContextDouble(daemon.folder)
  load(newer)
  const hooks = [host, newer].map((one) => one.hooks.get("context"))
  let given: string[] = []
  for (let n = 0; n < 50 && given.length < 2; n++) {
    // on a busy machine the answer may come too late for one session
    const id = `ses_${n}`
    host.sessions.set(id, { id, title: "Work", location: { directory: daemon.folder } })
    const event = { sessionID: id, system: [{ type: "text", text: BASE }], tools: {} }
    const asked = Promise.all(hooks.map((hook) => hook?.(event)))
    host.say({ id: `e${n}`, type: "session.execution.started", data: { sessionID: id } })
    await asked
    given = event.system.map(({ text }) => text)
  }
  assert.equal(given.length, 2)
  assert.match(String(given[1]), /^Points \d+$/)
})

test("sub-agents, judges, titles, and sessions of another directory get nothing", async () => {
  learns()
  await loaded()
  host.sessions.set("ses_there", { id: "ses_there", location: { directory: "/elsewhere" } })
  host.say(...events("tool turn"), ...events("subagent").filter(({ type }) => type !== "session.created"))
  host.say({ id: "t", type: "session.execution.started", data: { sessionID: "ses_there" } })
  await until(() => idles(CHILD).length === 1)
  assert.deepEqual(await host.request(CHILD), [BASE])
  assert.deepEqual(await host.request("ses_there"), [BASE])
  assert.deepEqual(await host.request(WORK, "title"), [BASE])
  assert.ok(!daemon.asks.some(({ data }) => (data as Json)["sessionID"] !== WORK))
})

// shows: I34, I35
test("slow, gone, switched off, or with a request of another form, the host goes on as if alone", async () => {
  await loaded()
  const before = Date.now()
  assert.deepEqual(await host.request("ses_unknown"), [BASE])
  learns()
  await daemon.stop()
  await daemon.start()
  host.say(...events("tool turn"))
  await until(() => idles().length === 1)
  daemon.answer = () => new Promise(() => {})
  assert.deepEqual(await host.request(WORK), [BASE])
  daemon.answer = async () => ({ text: "late" })
  assert.deepEqual(await host.request(WORK), [BASE], "it goes without from then on")
  const hook = host.hooks.get("context")
  for (const odd of [undefined, null, 1, {}, { sessionID: 1 }, { sessionID: WORK, system: "x" }])
    await hook?.(odd)
  const frozen = Object.freeze({ sessionID: "ses_new", system: Object.freeze([]) })
  await hook?.(frozen)
  assert.ok(Date.now() - before < 20_000)
})

test("a judge that hangs is given up in its time, and when the daemon cancels it", async () => {
  await loaded()
  host.instead["generate.text"] = () => new Promise(() => {})
  const late = await carriedOut({ ...evaluate, data: { ...evaluate.data, timeout_ms: 20 }, id: "late" })
  assert.deepEqual([late["status"], late["error"]], ["failed", "no answer in 20 ms"])
  daemon.order({ id: "o", session: WORK, ...evaluate })
  await until(() => host.named("generate.text").length === 2)
  daemon.order({ id: "stop", kind: "cancel", session: WORK, data: { order: "o" } })
  await until(() => daemon.results.some(({ id, error }) => id === "o" && error === "cancelled"))
})

test("which models there are, without what nobody should choose; a toast is refused, for there is none", async () => {
  await loaded()
  const { data } = await carriedOut({ kind: "providers", id: "p" })
  assert.deepEqual(data, {
    providers: [
      { id: "fake", models: ["fake-1"] },
      { id: "other", models: ["big"] },
    ],
  })
  const toast = await carriedOut({ kind: "toast", id: "t", data: { title: "a", message: "b" } })
  assert.equal(toast["status"], "failed")
})

const EACH: (keyof Calls)[] = [
  "session.get",
  "session.context",
  "session.synthetic",
  "session.create",
  "session.switchModel",
  "session.prompt",
  "session.wait",
  "session.interrupt",
  "session.remove",
  "session.hook",
  "model.list",
  "agent.list",
]
for (const lacking of EACH)
  test(`a version without ${lacking}: each order has its result, and events are told`, async () => {
    host = new ContextDouble(daemon.folder, [lacking, "generate.text"])
    await loaded()
    host.say(...events("tool turn"))
    await until(() => idles().length === 1)
    const orders = [
      evaluate,
      { ...feedback, if: { task: "", turn: "" } },
      { kind: "read" },
      { kind: "providers" },
    ]
    for (const [at, order] of orders.entries()) {
      const { status, error } = await carriedOut({ ...order, id: `${at}` })
      if (status !== "done") assert.match(String(error), /this opencode has no/)
    }
  })

test("a session that began before the plugin was loaded is asked for, once; one that can't be is told all the same", async () => {
  await loaded()
  host.say(...events("tool turn"), ...events("subagent").filter(({ type }) => type !== "session.created"))
  await until(() => idles(CHILD).length === 1 && idles().length === 2)
  assert.deepEqual(host.named("session.get"), [{ sessionID: WORK }, { sessionID: CHILD }])
  const [first] = of(CHILD)
  assert.deepEqual([first?.kind, (first?.data["info"] as Json)["parentID"]], ["session.created", WORK])
  host.instead["session.get"] = () => new Promise(() => {})
  const data = { sessionID: "ses_new" }
  host.say(
    { id: "e1", type: "session.execution.started", data },
    { id: "e2", type: "session.execution.failed", data },
  )
  await until(() => idles("ses_new").length === 1)
})

test("another directory's session is left to that directory's plugin, whatever the envelope says", async () => {
  await loaded()
  host.sessions.set(WORK, { id: WORK, location: { directory: "/elsewhere" } })
  host.sessions.set("ses_here", { id: "ses_here", location: { directory: `${daemon.folder}/` } })
  const end = { id: "e", type: "session.execution.succeeded", data: { sessionID: "ses_here" } }
  host.say(...events("tool turn"), { ...end, location: { directory: "/elsewhere" } })
  await until(() => idles("ses_here").length === 1)
  assert.deepEqual(of(WORK), [])
})

test("a stream that ends or breaks is opened again; an odd event costs only itself", async () => {
  await loaded()
  const odd = [null, 1, "x", { type: "session.created", data: { sessionID: {} } }] as unknown as Event[]
  host.say(...odd, "end")
  await until(() => host.streams === 2)
  host.say(new Error("broken"))
  await until(() => host.streams === 3)
  host.say(...events("tool turn"))
  await until(() => idles().length === 1)
})

test("loaded again before the older load has left, it works once and goes on", async () => {
  const [older, newer] = [host, new ContextDouble(daemon.folder)]
  const leave = await loaded(older)
  load(newer)
  for (const one of [older, newer]) one.say(...events("tool turn"))
  await until(() => idles().length === 1)
  await leave()
  newer.say(...events("abort by a person"))
  await until(() => idles().length === 2)
  assert.equal(daemon.hellos.length, 1)
  assert.equal(of(WORK).filter(({ kind }) => kind === "tool").length, 1)
})

test("leaving tells the daemon, and afterwards it can be loaded anew", async () => {
  const close = await loaded()
  host.say(...events("tool turn"))
  await until(() => idles().length === 1)
  await close()
  assert.equal(daemon.kinds().at(-1), "dispose")
  await close()
  load(new ContextDouble(daemon.folder))
  await until(() => daemon.hellos.length === 2)
})

test("leaving ends, whatever the host and the daemon do", async () => {
  host.instead["generate.text"] = () => new Promise(() => {})
  host.instead["event.subscribe"] = () => ({
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
  })
  const close = await loaded()
  daemon.order({ id: "o", session: WORK, ...evaluate })
  await until(() => host.named("generate.text").length === 1)
  daemon.refuse = Array.from({ length: 1000 }, () => 503)
  await close()
})
