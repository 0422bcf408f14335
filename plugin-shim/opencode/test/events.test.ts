import assert from "node:assert/strict"
import { test } from "node:test"
import { chatMessage, factsOf } from "../src/events.ts"
import { Tracker } from "../src/tracker.ts"
import type { Json } from "../src/wire.ts"

const S = "ses_1"
const event = (type: string, properties: Json) => ({
  id: "evt_1",
  type,
  properties: { sessionID: S, ...properties },
})
const status = (type: string) => event("session.status", { status: { type } })
const part = (part: Json) => event("message.part.updated", { part: { sessionID: S, ...part } })
const message = (info: Json) => event("message.updated", { info: { sessionID: S, ...info } })
const answer = (parentID: string) => message({ id: `${parentID}_a`, role: "assistant", parentID })
const delta = (text: string) =>
  event("message.part.delta", { messageID: "m", partID: "p", field: "text", delta: text })
const kinds = (events: unknown[], tracker = new Tracker()) =>
  events.flatMap((one) => factsOf(one, tracker)).map((fact) => fact.kind)

// shows: I36
test("noise, unknown events and newer payloads are dropped", () => {
  const noise: unknown[] = [
    null,
    1,
    "x",
    {},
    { type: 1 },
    { type: "session.idle" },
    event("session.diff", {}),
  ]
  noise.push(event("todo.updated", {}), event("plugin.added", {}), part({}), message({}), status("dancing"))
  noise.push({ type: "message.updated", properties: { info: [] } }, event("session.updated.2", { info: 1 }))
  assert.deepEqual(kinds(noise), [])
})

// shows: I3
test("a turn: repeated busy is said once, both idles of an abort are said", () => {
  const aborted = { name: "MessageAbortedError", data: { message: "Aborted" } }
  const said = kinds([
    status("busy"),
    status("busy"),
    event("session.error", { error: aborted }),
    status("idle"),
    event("session.idle", {}),
    message({ id: "msg_2", role: "assistant", error: aborted }),
    message({ id: "msg_2", role: "assistant", error: aborted }),
    status("idle"),
    event("session.idle", {}),
  ])
  const expected = ["session.status", "session.error", "session.status", "session.idle", "message.error"]
  assert.deepEqual(said, [...expected, "session.idle"])
})

// shows: I12
test("idle said once more is a person who stops an idle session, unless the host gave up", () => {
  const turn = (...end: unknown[]) =>
    kinds([status("busy"), ...end, status("idle"), event("session.idle", {})])
  const again = [status("idle"), event("session.idle", {})]
  assert.deepEqual(turn(...again).slice(1), [
    "session.status",
    "session.idle",
    "session.error",
    "session.idle",
  ])
  const gaveUp = event("session.error", { error: { name: "APIError", data: { message: "no" } } })
  const failed = turn(gaveUp, ...again)
  assert.deepEqual(failed.slice(1), ["session.error", "session.status", "session.idle", "session.idle"])
})

// shows: I11
test("messages taken back are an abort, told once", () => {
  const tracker = new Tracker()
  const updated = (revert?: Json) =>
    event("session.updated", { info: { id: S, title: "t", ...(revert && { revert }) } })
  const facts = [
    updated(),
    updated({ messageID: "msg_1" }),
    updated({ messageID: "msg_1" }),
    updated(),
  ].flatMap((one) => factsOf(one, tracker))
  assert.deepEqual(
    facts.map((fact) => fact.kind),
    ["session.updated", "session.error"],
  )
  assert.deepEqual(facts[1]?.data["error"], { name: "MessageAbortedError", message: "messages taken back" })
  assert.ok(tracker.objection(S, { task: "", turn: "" }, false))
})

test("a shell command of the person's own is no message of a person and no turn", () => {
  const tracker = new Tracker()
  const ran = { type: "text", id: "p1", messageID: "msg_3", synthetic: true }
  const facts = [
    message({ id: "msg_2", role: "assistant" }),
    message({ id: "msg_3", role: "user" }),
    part({ ...ran, text: "The following tool was executed by the user" }),
    message({ id: "msg_4", role: "assistant", parentID: "msg_3" }),
  ].flatMap((one) => factsOf(one, tracker))
  assert.deepEqual(
    facts.map((fact) => fact.data["human"]),
    [false],
  )
  assert.equal(tracker.peek(S)?.turn, "msg_2")
})

test("an error is reduced to name and message", () => {
  const error = {
    name: "APIError",
    data: { message: "no", responseBody: "secret", responseHeaders: { a: "b" } },
  }
  const [fact] = factsOf(event("session.error", { error }), new Tracker())
  assert.deepEqual(fact, {
    kind: "session.error",
    data: { sessionID: S, error: { name: "APIError", message: "no" } },
  })
})

test("token deltas become one activity at once and then one every five seconds, with all bytes", () => {
  const tracker = new Tracker()
  const facts = [0, 1000, 4999, 5000, 6000].flatMap((t) => factsOf(delta("abcd"), tracker, t))
  assert.deepEqual(
    facts.map((fact) => fact.data["bytes"]),
    [4, 12],
  )
})

test("the growing output of a running tool is counted once", () => {
  const tracker = new Tracker()
  const run = (output: string) =>
    part({ type: "tool", id: "p1", messageID: "m", state: { status: "running", metadata: { output } } })
  const facts = [0, 1, 5000].flatMap((t, i) => factsOf(run("x".repeat(10 * (i + 1))), tracker, t))
  assert.deepEqual(
    facts.map((fact) => fact.data["bytes"]),
    [10, 20],
  )
})

test("session.updated is said only when title or parent changed", () => {
  const info = (title: string) => ({ info: { id: S, title, directory: "/p", cost: Math.random() } })
  const tracker = new Tracker()
  const say = (type: string, title: string) => factsOf(event(type, info(title)), tracker).length
  assert.equal(say("session.created", "a"), 1)
  assert.equal(say("session.updated", "a"), 0)
  assert.equal(say("session.updated", "b"), 1)
  assert.equal(say("session.updated", "b"), 0)
})

// shows: I1
test("a judge session is known by its title before it is known by its id, and stays silent", () => {
  const tracker = new Tracker()
  const created = event("session.created", { info: { id: S, title: "[reflectd judge]", directory: "/p" } })
  const edited = event("session.updated", { info: { id: S, title: "edited by a person", directory: "/p" } })
  assert.deepEqual(
    kinds([created, status("busy"), delta("x"), edited, event("session.idle", {})], tracker),
    [],
  )
  assert.equal(chatMessage(S, "m1", "a", [{ type: "text", text: "judge this" }], tracker), undefined)
  assert.deepEqual(kinds([event("session.deleted", { info: { id: S } })], tracker), ["session.deleted"])
})

// shows: I4
test("who wrote a user message", () => {
  const human = (parts: unknown[]) => {
    const tracker = new Tracker()
    const typed = chatMessage(S, "m", "build", parts, tracker)
    const told = [typed, ...[status("busy"), answer("m")].flatMap((one) => factsOf(one, tracker))]
    return told.find((fact) => fact?.kind === "chat.message")?.data["human"]
  }
  const ours = { type: "text", text: "go on", metadata: { reflectd: { order: "o1", kind: "feedback" } } }
  assert.equal(human([{ type: "text", text: "hi" }]), true)
  assert.equal(
    human([
      { type: "text", text: "Called the Read tool", synthetic: true },
      { type: "file" },
      { type: "text", text: "look" },
    ]),
    true,
  )
  assert.equal(human([{ type: "text", text: "Continue if", synthetic: true }]), false)
  assert.equal(
    human([
      { type: "compaction", auto: true },
      { type: "text", text: "x" },
    ]),
    false,
  )
  assert.equal(human([ours]), false)
  assert.equal(human([]), false)
  assert.equal(chatMessage(S, "m", "", [ours], new Tracker())?.data["order"], "o1")
})

// shows: I4
test("what another plugin puts in begins no task: at rest without an answer, or while the agent works", () => {
  const tracker = new Tracker()
  const put = (id: string) => chatMessage(S, id, "build", [{ type: "text", text: "context" }], tracker)
  put("msg_1")
  const [task, busy] = [status("busy"), answer("msg_1")].flatMap((one) => factsOf(one, tracker))
  assert.equal(busy?.kind, "session.status")
  assert.deepEqual(
    [task?.kind, task?.data["messageID"], task?.data["human"]],
    ["chat.message", "msg_1", true],
  )
  assert.deepEqual(put("msg_2")?.data, {
    sessionID: S,
    messageID: "msg_2",
    agent: "build",
    human: true,
    steers: true,
  })
  factsOf(event("session.idle", {}), tracker)
  assert.equal(put("msg_3"), undefined)
  const ours = [{ type: "text", text: "go on", metadata: { reflectd: { order: "o1", kind: "feedback" } } }]
  assert.equal(chatMessage(S, "msg_4", "build", ours, tracker)?.data["human"], false)
  assert.deepEqual(kinds([status("busy")], tracker), ["session.status"])
  assert.equal(tracker.peek(S)?.human, "msg_1")
  assert.ok(tracker.steers.has("msg_2"))
})

// shows: I4, I14
test("a command of the person's is no answer to what another plugin put in before", () => {
  const tracker = new Tracker()
  const shell = {
    type: "text",
    id: "p",
    messageID: "msg_2",
    text: "The following tool was executed by the user",
  }
  chatMessage(S, "msg_1", "build", [{ type: "text", text: "context" }], tracker)
  const told = [
    status("busy"),
    message({ id: "msg_2", role: "user" }),
    part({ ...shell, synthetic: true }),
    answer("msg_2"),
    event("session.idle", {}),
  ].flatMap((one) => factsOf(one, tracker))
  assert.deepEqual(
    told.filter((fact) => fact.kind === "chat.message").map((fact) => fact.data["human"]),
    [false],
  )
  assert.equal(tracker.peek(S)?.human, "")
  assert.deepEqual(kinds([status("busy"), answer("msg_1")], tracker), ["chat.message", "session.status"])
})

// shows: I17
test("what a parent agent tells a child session was typed by nobody", () => {
  const tracker = new Tracker()
  factsOf(
    event("session.created", { info: { id: S, parentID: "ses_0", title: "sub", directory: "/p" } }),
    tracker,
  )
  assert.equal(chatMessage(S, "m", "general", [{ type: "text", text: "go" }], tracker)?.data["human"], false)
})

test("a message told by the hook is not told again by its events", () => {
  const tracker = new Tracker()
  const typed = { type: "text", id: "p1", messageID: "msg_1", text: "hi" }
  chatMessage(S, "msg_1", "build", [typed], tracker)
  const events = [message({ id: "msg_1", role: "user" }), part(typed), status("busy"), answer("msg_1")]
  assert.deepEqual(kinds(events, tracker), ["chat.message", "session.status"])
  assert.equal(chatMessage(S, "msg_1", "build", [typed], tracker), undefined)
})

test("a compaction has no hook: it is told from its events, once, before what follows", () => {
  const tracker = new Tracker()
  const facts = [
    message({ id: "msg_1", role: "user", agent: "build" }),
    part({ type: "compaction", id: "p1", messageID: "msg_1", auto: true }),
    status("busy"),
    message({ id: "msg_1", role: "user" }),
    event("session.compacted", {}),
  ].flatMap((one) => factsOf(one, tracker))
  assert.deepEqual(
    facts.map((fact) => fact.kind),
    ["chat.message", "session.status", "session.compacted"],
  )
  assert.deepEqual(facts[0]?.data, { sessionID: S, messageID: "msg_1", agent: "build", human: false })
})

test("a typed part that comes after a synthetic one still makes the message human", () => {
  const tracker = new Tracker()
  const facts = [
    message({ id: "msg_1", role: "user" }),
    part({ type: "text", id: "p1", messageID: "msg_1", synthetic: true, text: "file" }),
    part({ type: "text", id: "p2", messageID: "msg_1", text: "look" }),
    message({ id: "msg_2", role: "assistant", parentID: "msg_1" }),
  ].flatMap((one) => factsOf(one, tracker))
  assert.equal(facts[0]?.data["human"], true)
  assert.equal(tracker.peek(S)?.human, "msg_1")
})

test("an old user message that is merely touched is no news", () => {
  assert.deepEqual(kinds([message({ id: "msg_0", role: "user", summary: { diffs: [] } }), status("busy")]), [
    "session.status",
  ])
})

test("requests for a person carry their ids", () => {
  const tracker = new Tracker()
  const data = (type: string, fields: Json) => factsOf(event(type, fields), tracker)[0]?.data
  assert.deepEqual(data("permission.asked", { id: "per_1", metadata: { command: "rm" } }), {
    sessionID: S,
    id: "per_1",
  })
  assert.deepEqual(data("permission.replied", { requestID: "per_1", reply: "once" }), {
    sessionID: S,
    requestID: "per_1",
  })
  assert.deepEqual(data("question.asked", { id: "que_1" }), { sessionID: S, id: "que_1" })
  assert.deepEqual(data("question.rejected", { requestID: "que_1" }), { sessionID: S, requestID: "que_1" })
})

// shows: I44
test("ten thousand sessions leave a bounded tracker", () => {
  const tracker = new Tracker()
  for (let i = 0; i < 10_000; i++)
    factsOf({ type: "session.status", properties: { sessionID: `s${i}`, status: { type: "busy" } } }, tracker)
  assert.equal(tracker.peek("s0"), undefined)
  assert.ok(tracker.peek("s9999"))
})

test("a finished tool call is said once, as digests; numbers in its output do not count", () => {
  const tracker = new Tracker()
  const tool = (id: string, state: Json) => part({ id, type: "tool", tool: "bash", messageID: "m", state })
  const run = (id: string, command: string, output: string, description = "tests") =>
    tool(id, { status: "completed", input: { command, description }, output, metadata: { exit: 1 } })
  const facts = [
    tool("p1", { status: "running", input: { command: "npm test" } }),
    run("p1", "npm test", "2 failed in 1.24 s"),
    run("p1", "npm test", "2 failed in 1.24 s"),
    run("p2", "npm test", "2 failed in 3.10 s", "again"),
    run("p3", "npm run lint", "2 failed in 3.10 s"),
    tool("p4", { status: "error", input: {}, error: "no such file" }),
  ]
    .flatMap((one) => factsOf(one, tracker))
    .filter((fact) => fact.kind === "tool")
    .map((fact) => fact.data)
  assert.equal(facts.length, 4)
  const [a, b, c, d] = facts
  assert.deepEqual(a, b)
  assert.notEqual(a?.["call"], c?.["call"])
  assert.equal(a?.["result"], c?.["result"])
  assert.deepEqual([a?.["failed"], d?.["failed"]], [true, true])
  assert.ok(!JSON.stringify(facts).includes("npm test"))
})
