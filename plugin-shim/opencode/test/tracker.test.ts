import assert from "node:assert/strict"
import { test } from "node:test"
import { chatMessage, factsOf } from "../src/events.ts"
import { Tracker } from "../src/tracker.ts"
import type { Json } from "../src/wire.ts"

const S = "ses_1"
const feed = (tracker: Tracker, type: string, properties: Json = {}) =>
  factsOf({ type, properties: { sessionID: S, ...properties } }, tracker)
const type = (tracker: Tracker, id: string) =>
  chatMessage(S, id, "build", [{ type: "text", text: "hi" }], tracker)
const answer = (tracker: Tracker, id: string, info: Json = {}) =>
  feed(tracker, "message.updated", { info: { id, role: "assistant", ...info } })
const idle = (tracker: Tracker) => feed(tracker, "session.idle")

function finishedTurn(): Tracker {
  const tracker = new Tracker()
  type(tracker, "msg_1")
  feed(tracker, "session.status", { status: { type: "busy" } })
  answer(tracker, "msg_2")
  idle(tracker)
  return tracker
}
const only = { task: "msg_1", turn: "msg_2" }

test("the same task, the same turn and idle: no objection", () => {
  assert.equal(finishedTurn().objection(S, only, false), "")
})

test("a session never heard of is the daemon's to judge", () => {
  assert.equal(new Tracker().objection("ses_other", only, false), "")
})

// shows: I10
test("a busy session is refused, unless the run is about to end", () => {
  const tracker = finishedTurn()
  feed(tracker, "session.status", { status: { type: "retry" } })
  assert.equal(tracker.objection(S, only, false), "busy")
  assert.equal(tracker.objection(S, only, true), "")
})

// shows: I14
test("a person typed meanwhile", () => {
  const tracker = finishedTurn()
  type(tracker, "msg_3")
  assert.equal(tracker.objection(S, only, true), "a newer human message")
})

test("a newer turn, but not a late update of an older message", () => {
  const tracker = finishedTurn()
  answer(tracker, "msg_0")
  assert.equal(tracker.objection(S, only, false), "")
  answer(tracker, "msg_4")
  assert.equal(tracker.objection(S, only, false), "a newer turn")
})

// shows: I11
test("after Esc there is no feedback, whichever of error and idle comes first", () => {
  const error = { name: "MessageAbortedError", data: { message: "Aborted" } }
  const first = finishedTurn()
  feed(first, "session.error", { error })
  assert.match(first.objection(S, only, false), /stopped/)
  const late = finishedTurn()
  answer(late, "msg_2", { error })
  idle(late)
  assert.match(late.objection(S, only, false), /stopped/)
})

// shows: I13
test("the next human message ends the abort", () => {
  const tracker = finishedTurn()
  feed(tracker, "session.error", { error: { name: "MessageAbortedError" } })
  type(tracker, "msg_5")
  feed(tracker, "session.status", { status: { type: "busy" } })
  idle(tracker)
  assert.equal(tracker.objection(S, { task: "msg_5", turn: "" }, false), "")
})

// shows: I1
test("a judge session is never prompted", () => {
  const tracker = new Tracker()
  tracker.addJudge(S)
  assert.match(tracker.objection(S, only, true), /judge/)
})
