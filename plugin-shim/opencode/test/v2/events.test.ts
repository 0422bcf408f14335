import assert from "node:assert/strict"
import { test } from "node:test"
import { chatMessage, factsOf } from "../../src/events.ts"
import { Tracker } from "../../src/tracker.ts"
import { Translator } from "../../src/v2/events.ts"
import { list, record, text } from "../../src/wire.ts"
import type { Json } from "../../src/wire.ts"
import { CASES, CHILD, events, WORK } from "./double.ts"
import type { Event } from "./double.ts"

/** What the daemon is told, one word or two for each fact; a sub-agent's facts are indented. */
function told(replayed: Event[], translator = new Translator(), tracker = new Tracker()): string[] {
  const facts = replayed
    .flatMap((event) => translator.translate(event))
    .flatMap((event) => {
      if (event.type !== "chat.message") return factsOf(event, tracker, 0)
      const { sessionID, messageID, parts } = event.properties
      return chatMessage(text(sessionID), text(messageID), "", list(parts), tracker) ?? []
    })
  return facts
    .filter(({ kind }) => kind !== "activity")
    .map(({ kind, data }) => (data["sessionID"] === CHILD ? "  " : "") + word(kind, data))
}

function word(kind: string, data: Json): string {
  const more = {
    "session.status": text(record(data["status"])["type"]),
    "session.error": text(record(data["error"])["name"]),
    "message.error": text(record(data["error"])["name"]),
    "chat.message": data["human"] ? "typed" : "not typed",
    tool: `${data["tool"]} ${data["failed"] ? "failed" : "done"}`,
  }[kind]
  return more ? `${kind}: ${more}` : kind
}

const ABORTED = "MessageAbortedError"
const typed = ["chat.message: typed", "session.status: busy"]
const asked = [...typed, "permission.asked", "permission.replied"]
const stopped = [`message.error: ${ABORTED}`, `session.error: ${ABORTED}`, "session.idle"]
const INVALID = "provider.invalid-request"

const TOLD: Record<string, string[]> = {
  "tool turn": ["session.status: busy", "tool: shell done", "session.updated", "session.idle"],
  "abort by a person": [...typed, ...stopped],
  "HTTP 400": [...typed, `message.error: ${INVALID}`, `session.error: ${INVALID}`, "session.idle"],
  "HTTP 500, abort in back-off": [
    ...typed,
    "session.status: retry",
    "session.status: busy",
    "session.status: retry",
    ...stopped.slice(1),
  ],
  "feedback by the plugin": ["chat.message: not typed", "session.status: busy", "session.idle"],
  subagent: [
    ...typed,
    "  session.created",
    "  chat.message: not typed",
    "  session.status: busy",
    "  session.idle",
    "tool: task done",
    "session.idle",
  ],
  "permission once": [...asked, "tool: shell done", "session.idle"],
  "permission rejected": [...asked, "tool: shell failed", ...stopped],
  "question, then abort": [
    ...typed,
    "question.asked",
    "question.rejected",
    "tool: question failed",
    ...stopped,
  ],
  "busy: steer then queue": [...typed, "chat.message: not typed", "chat.message: typed", "session.idle"],
  "manual compaction": ["chat.message: not typed", "session.status: busy", "session.idle"],
}

test("every recorded case is told", () => assert.deepEqual(Object.keys(TOLD), CASES))

for (const [name, expected] of Object.entries(TOLD))
  test(`recorded: ${name}`, () => assert.deepEqual(told(events(name)), expected))

test("all cases in one session, as they were recorded", () => {
  assert.deepEqual(told(events()), Object.values(TOLD).flat())
})

test("one end for each period of work: a second one is told only when a person stopped it", () => {
  const end = (type: string): Event => ({
    id: type,
    type: `session.execution.${type}`,
    data: { sessionID: WORK },
  })
  const begin = end("started")
  const translator = new Translator()
  assert.deepEqual(told([begin, end("succeeded"), end("succeeded"), end("failed")], translator), [
    "session.status: busy",
    "session.idle",
  ])
  assert.deepEqual(told([end("interrupted")], translator), [`session.error: ${ABORTED}`, "session.idle"])
  assert.deepEqual(told([begin, end("succeeded")], translator), ["session.status: busy", "session.idle"])
})

// shows: I36
test("what nobody expects is skipped", () => {
  const known = events()
  const odd = [undefined, null, 1, "x", [], {}, { type: "session.idle" }, { type: 1, data: 1 }]
  const data = { sessionID: WORK }
  const emptied = known.map(({ id, type }) => ({ id, type, data }))
  const unknown = { id: "e", type: "session.execution.paused", data }
  assert.deepEqual(told([...odd, unknown] as Event[]), [])
  assert.ok(told(emptied as Event[]).includes("session.idle"))
  const broken = known.flatMap((event) =>
    Object.keys(event.data).flatMap((key) =>
      [null, 1, [], {}, "x"].map((value) => ({ ...event, data: { ...event.data, [key]: value } })),
    ),
  )
  assert.ok(told(broken as Event[]).length > 0)
})
