import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"
import { chatMessage, factsOf } from "../src/events.ts"
import { isHuman, projectMessages } from "../src/project.ts"
import { COMMAND, commandIn, markCommand, ours } from "../src/reflect.ts"
import { Tracker } from "../src/tracker.ts"
import { list, record, text } from "../src/wire.ts"
import type { Json } from "../src/wire.ts"

/** What opencode 1.18.33 sent and stored, recorded. */
const DATA = new URL("../../../tests/data/consent/opencode-1.18.33.json", import.meta.url)
const RECORDED = JSON.parse(readFileSync(DATA, "utf8")) as Record<string, Json>
const S = "ses_1"
const event = (type: string, properties: Json) => ({ type, properties: { sessionID: S, ...properties } })
const typed = (words: string) => {
  const parts: Json[] = [{ type: "text", text: COMMAND.template.replace("$ARGUMENTS", words) }]
  markCommand("reflect", words, parts)
  return parts
}

for (const name of ["answered", "two", "own_words"])
  test(`a dialog with questions of ours is told with them and its answer (recorded: ${name})`, () => {
    const tracker = new Tracker()
    const [asked, replied] = list(record(RECORDED[name])["events"]).map(record)
    const { id, sessionID, questions, tool } = record(asked?.["properties"])
    const { answers } = record(replied?.["properties"])
    assert.deepEqual(factsOf(asked, tracker), [{ kind: "question.asked", data: { sessionID, id } }])
    const known = { call: record(tool)["callID"], questions, answers }
    assert.deepEqual(factsOf(replied, tracker), [
      { kind: "question.replied", data: { sessionID, requestID: id, ...known } },
    ])
    assert.deepEqual(factsOf(replied, tracker), [
      { kind: "question.replied", data: { sessionID, requestID: id } },
    ])
  })

test("a dismissed dialog has no answer, and what is not ours is told without its text", () => {
  const tracker = new Tracker()
  const [asked, rejected] = list(record(RECORDED["dismissed"])["events"]).map(record)
  factsOf(asked, tracker)
  assert.deepEqual(
    factsOf(rejected, tracker).map(({ data }) => Object.keys(data)),
    [["sessionID", "requestID"]],
  )
  const strange = { question: "Which database?", header: "DB", options: [] }
  const mine = { question: "Shall it? (reflectd 0a1b2c3d4e5f)", header: "Rule", options: [] }
  for (const questions of [[strange], [mine, strange], [], null, [mine, mine, mine, mine, mine]]) {
    factsOf(event("question.asked", { id: "q", questions }), tracker)
    assert.deepEqual(factsOf(event("question.replied", { requestID: "q", answers: [["x"]] }), tracker), [
      { kind: "question.replied", data: { sessionID: S, requestID: "q" } },
    ])
  }
  assert.deepEqual(ours([mine]), [mine])
})

// shows: I9
test("our command is told as such, and the work on it is not", () => {
  const tracker = new Tracker()
  const fact = chatMessage(S, "msg_1", "build", typed("learn Use bun"), tracker)
  assert.deepEqual(fact, {
    kind: "command",
    data: { sessionID: S, messageID: "msg_1", arguments: "learn Use bun" },
  })
  const work = [
    event("session.status", { status: { type: "busy" } }),
    event("message.updated", { info: { sessionID: S, id: "msg_2", role: "assistant" } }),
    event("message.part.updated", {
      part: {
        sessionID: S,
        type: "tool",
        id: "p",
        tool: "bash",
        state: { status: "completed", output: "x" },
      },
    }),
    event("question.asked", { id: "q" }),
    event("session.error", { error: { name: "MessageAbortedError" } }),
    event("session.status", { status: { type: "idle" } }),
    event("session.idle", {}),
  ]
  assert.deepEqual(
    work.flatMap((one) => factsOf(one, tracker)).map(({ kind }) => kind),
    ["question.asked"],
  )
  chatMessage(S, "msg_3", "build", [{ type: "text", text: "Add a test" }], tracker)
  assert.deepEqual(
    [event("session.status", { status: { type: "busy" } }), event("session.idle", {})]
      .flatMap((one) => factsOf(one, tracker))
      .map(({ kind }) => kind)
      .slice(0, 2),
    ["chat.message", "session.status"],
  )
})

// shows: I9
test("the work on our command is not told either behind what another plugin put in", () => {
  const tracker = new Tracker()
  chatMessage(S, "msg_1", "build", [{ type: "text", text: "context" }], tracker)
  chatMessage(S, "msg_2", "build", typed("status"), tracker)
  const answer = { sessionID: S, id: "msg_3", role: "assistant", parentID: "msg_2" }
  const work = [
    event("session.status", { status: { type: "busy" } }),
    event("message.updated", { info: answer }),
    event("session.idle", {}),
  ]
  assert.deepEqual(
    work.flatMap((one) => factsOf(one, tracker)),
    [],
  )
})

test("a command that is typed while the agent works does not hide the end of that work", () => {
  const tracker = new Tracker()
  chatMessage(S, "msg_1", "build", [{ type: "text", text: "Add a test" }], tracker)
  factsOf(event("session.status", { status: { type: "busy" } }), tracker)
  const answer = { sessionID: S, id: "msg_1a", role: "assistant", parentID: "msg_1" }
  factsOf(event("message.updated", { info: answer }), tracker)
  chatMessage(S, "msg_2", "build", typed("status"), tracker)
  assert.deepEqual(
    factsOf(event("session.idle", {}), tracker).map(({ kind }) => kind),
    ["session.idle"],
  )
})

test("a message of our command is nobody's words, wherever it is read", () => {
  const parts = typed("learn Use bun")
  assert.equal(isHuman(parts), false)
  assert.equal(commandIn(parts), "learn Use bun")
  const messages = [
    { info: { id: "msg_1", role: "user" }, parts: [{ type: "text", id: "p1", text: "Add a test" }] },
    { info: { id: "msg_2", role: "user" }, parts },
  ]
  const told = projectMessages(messages).map(({ parts }) => record(list(parts)[0])["synthetic"])
  assert.deepEqual(told, [undefined, true])
})

test("only our own text is marked: not a person's command of the same name, nor another one", () => {
  const strange = [{ type: "text", text: "Think about what you did" }]
  markCommand("reflect", "x", strange)
  const other = [{ type: "text", text: COMMAND.template }]
  markCommand("init", "x", other)
  for (const parts of [strange, other]) assert.equal(commandIn(parts), undefined)
  for (const odd of [undefined, null, 1, [], [null]]) markCommand("reflect", "", odd)
  assert.ok(text(COMMAND.template).includes("$ARGUMENTS"))
})
