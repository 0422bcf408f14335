import assert from "node:assert/strict"
import { test } from "node:test"
import { projectMessages } from "../../src/project.ts"
import { oldMessages } from "../../src/v2/messages.ts"

const shell = (state: object) => ({
  type: "tool",
  id: "call_1",
  name: "shell",
  time: { created: 5, ran: 6 },
  state,
})
const time = { created: 1 }

test("a conversation, as the daemon reads it", () => {
  const done = {
    status: "completed",
    input: { command: "make" },
    content: [{ type: "text", text: "made" }, { type: "file" }],
    metadata: { exit: 2 },
  }
  const agent = { status: "running", input: {}, content: [], structured: { sessionID: "ses_child" } }
  const failed = { status: "error", input: {}, content: [], error: { type: "aborted", message: "stopped" } }
  const [typed, answer, feedback, compaction, ...rest] = projectMessages(
    oldMessages([
      { type: "system", id: "msg_0", text: "rules", time },
      { type: "model-switched", id: "msg_0b", time },
      { type: "user", id: "msg_1", text: "do it", files: [{ uri: "x", name: "x.png" }], time },
      {
        type: "assistant",
        id: "msg_2",
        agent: "build",
        model: { id: "m", providerID: "p" },
        content: [
          { type: "reasoning", id: "r", text: "hm" },
          shell(done),
          { ...shell(agent), name: "subagent" },
          shell(failed),
          { type: "text", id: "t", text: "Done." },
        ],
        finish: "error",
        error: { type: "aborted", message: "Step interrupted" },
        cost: 0.5,
        tokens: { input: 1, output: 2, reasoning: 3, cache: { read: 4, write: 5 } },
        time: { created: 2, completed: 9 },
      },
      { type: "synthetic", id: "msg_3", text: "go on", metadata: { reflectd: { order: "rfl_1" } }, time },
      { type: "idle", id: "msg_4", outcome: "succeeded" },
      { type: "compaction", id: "msg_5", reason: "auto", summary: "s", recent: "r", time },
      { type: "shell", id: "msg_6", command: "ls", output: "a", time },
      null,
    ]),
  ) as { info: object; parts: object[] }[]
  assert.deepEqual(typed?.parts, [
    { type: "text", id: "msg_1", text: "do it" },
    { type: "file", id: "msg_1", name: "x.png" },
  ])
  assert.deepEqual(answer?.info, {
    id: "msg_2",
    role: "assistant",
    agent: "build",
    providerID: "p",
    modelID: "m",
    finish: "error",
    error: { name: "MessageAbortedError", message: "Step interrupted" },
    cost: 0.5,
    tokens: 15,
    time: { created: 2, completed: 9 },
  })
  const call = { type: "tool", id: "call_1", callID: "call_1", tool: "bash" }
  assert.deepEqual(answer?.parts, [
    {
      ...call,
      tool: "shell",
      state: { status: "completed", input: { command: "make" }, output: "made\n", exit: 2, start: 6 },
    },
    { ...call, tool: "task", state: { status: "running", input: {}, session: "ses_child", start: 6 } },
    { ...call, tool: "shell", state: { status: "error", input: {}, error: "stopped", start: 6 } },
    { type: "text", id: "t", text: "Done." },
  ])
  assert.deepEqual(feedback?.parts, [
    { type: "text", id: "msg_3", text: "go on", synthetic: true, order: "rfl_1" },
  ])
  assert.deepEqual(compaction?.parts, [{ type: "compaction", auto: true }])
  assert.equal(rest.length, 0) // what a person ran is no part of the conversation
})

// shows: I36
test("what is no list of messages is no message", () => {
  for (const odd of [undefined, null, {}, "x", [null, 1, "x", [], {}, { type: "later" }]])
    assert.deepEqual(oldMessages(odd), [])
})
