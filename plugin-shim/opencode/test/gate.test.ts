import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"
import { Gate } from "../src/gate.ts"
import { sleep } from "../src/pump.ts"
import { Tracker } from "../src/tracker.ts"
import type { HookState, Json, Order } from "../src/wire.ts"

const S = "ses_1"
const M = "msg_2"
const feedback = {
  id: "fb",
  kind: "feedback",
  session: S,
  if: { task: "msg_1", turn: M },
  data: { text: "go on" },
}

let log: string[]
let answer: Json | null
let connected: boolean
let state: HookState
let tracker: Tracker
let gate: Gate
let asked: number[]
let thinks: () => Promise<unknown>

beforeEach(() => {
  log = []
  asked = []
  thinks = async () => {}
  answer = { feedback }
  connected = true
  state = { gate: true, gate_ms: 1000, context: false }
  tracker = new Tracker()
  const link = {
    get connected() {
      return connected
    },
    get state() {
      return state
    },
    flushed: async () => true,
    ask: async (what: string, data: Json, ms: number) => {
      log.push(data["text"] ? what : "withdraw")
      asked.push(ms)
      await thinks()
      return answer
    },
  }
  const orders = {
    accept: (raw: unknown, busy?: boolean) => void log.push(`accept ${(raw as Order).id} ${busy}`),
    refuse: (order: Order, why: string) => void log.push(`refuse ${order.id}: ${why}`),
  }
  gate = new Gate(link, orders, tracker, 5)
})

const part = (fields: Json, messageID = M) =>
  gate.see({ type: "message.part.updated", properties: { sessionID: S, part: { messageID, ...fields } } })
const finish = (reason: string) => part({ type: "step-finish", reason })
const complete = () => gate.textComplete(S, M, "All done.")

// shows: I38
test("feedback is queued when the step ends the turn, not before, and once", async () => {
  await complete()
  part({ type: "text", text: "All done." })
  assert.deepEqual(log, ["gate"])
  finish("stop")
  finish("stop")
  assert.deepEqual(log, ["gate", "accept fb true"])
})

// shows: I38
test("a text that a call follows is no question, and none any more when the call comes late", async () => {
  const early = complete()
  gate.called(S)
  await early
  assert.deepEqual(log, [])
  thinks = () => new Promise(() => {})
  const late = complete()
  while (log.length === 0) await sleep(1)
  gate.called("ses_other")
  gate.called(S)
  await late
  assert.deepEqual(log, ["gate", "withdraw"])
})

test("what is waited for in vain counts against one time for all texts, until the agent is sent back", async () => {
  state = { gate: true, gate_ms: 60_000, context: false }
  answer = null
  thinks = () => sleep(20)
  await complete()
  await complete()
  const [first = 0, second = 0] = asked
  assert.ok(first === 60_000 && second < first, `${asked}`)
  answer = { feedback }
  await complete()
  finish("stop")
  await complete()
  assert.equal(asked[3], 60_000)
})

test("when that time is over nobody is asked any more", async () => {
  state = { gate: true, gate_ms: 1, context: false }
  answer = null
  thinks = () => sleep(20)
  await complete()
  await complete()
  assert.deepEqual(log, ["gate"])
})

test("a tool call of the same message makes it stale", async () => {
  await complete()
  part({ type: "tool" }, "msg_other")
  part({ type: "tool" })
  finish("stop")
  assert.deepEqual(log, ["gate", "refuse fb: a tool call followed"])
})

test("a step that does not end the turn makes it stale", async () => {
  await complete()
  finish("tool-calls")
  assert.match(log[1] ?? "", /^refuse fb/)
})

for (const type of ["session.error", "session.idle", "session.deleted"])
  test(`${type} before the end makes it stale`, async () => {
    await complete()
    gate.see({ type, properties: { sessionID: "ses_other" } })
    gate.see({ type, properties: { sessionID: S } })
    finish("stop")
    assert.deepEqual(log, ["gate", `refuse fb: ${type} before the turn ended`])
  })

test("a person who types, a later text and the end of the run make it stale", async () => {
  await complete()
  gate.heard(S)
  await complete()
  await complete()
  gate.close()
  assert.deepEqual(log, [
    "gate",
    "refuse fb: a newer human message",
    "gate",
    "refuse fb: another text followed",
    "gate",
    "refuse fb: the run ended",
  ])
})

test("nobody is asked when not connected, when switched off, for judges, children, summaries and no text", async () => {
  connected = false
  await complete()
  connected = true
  state = { gate: false, gate_ms: 1, context: false }
  await complete()
  state = { gate: true, gate_ms: 1, context: false }
  await gate.textComplete(S, M, " \n")
  tracker.session("ses_child").parentID = S
  await gate.textComplete("ses_child", M, "x")
  tracker.addJudge("ses_judge")
  await gate.textComplete("ses_judge", M, "x")
  tracker.session(S).summary = true
  await complete()
  assert.deepEqual(log, [])
})

test("no feedback, no answer and an answer for another session end the run as it is", async () => {
  for (const odd of [null, {}, { feedback: null }, { feedback: { id: "x" } }]) {
    answer = odd
    await complete()
    finish("stop")
  }
  answer = { feedback: { ...feedback, session: "ses_other" } }
  await complete()
  finish("stop")
  assert.deepEqual(log.slice(4), ["gate", "refuse fb: not for this turn"])
})
