import assert from "node:assert/strict"
import { test } from "node:test"
import {
  cut,
  cutOutput,
  findTask,
  isEnough,
  mayChangeNothing,
  projectMessages,
  projectWhole,
} from "../src/project.ts"
import { isRecord, record } from "../src/wire.ts"
import type { Json } from "../src/wire.ts"
import { assistant, user } from "./host-double.ts"

const shape = (messages: Json[]) =>
  messages.map(({ info, parts }) => {
    const first = record((parts as Json[])[0])
    return `${record(info)["role"]}:${first["text"] ?? first["type"] ?? "-"}`
  })

// shows: I4
test("a task begins at its first human message; feedback and continuations do not begin one", () => {
  const messages = [
    user("one"),
    assistant("did one"),
    user("two"),
    assistant("tool", { finish: "tool-calls" }),
    user("steering"),
    assistant("did two"),
    user("go on", { metadata: { reflectd: { order: "o", kind: "feedback" } } }),
    assistant("did more"),
    user("Continue if you have next steps", { synthetic: true }),
    assistant("did all"),
  ]
  assert.deepEqual(findTask(messages), { start: 2, covered: true, earlier: [0] })
})

// shows: I4
test("what a program puts in begins no task: at work, without an answer, or where the host was at work", () => {
  const putIn = user("context")
  const work = [
    user("one"),
    assistant("did one"),
    user("two"),
    assistant("did two"),
    user("go on", { metadata: { reflectd: { order: "o", kind: "feedback" } } }),
    assistant("tool", { finish: "tool-calls" }),
  ]
  const start = (...after: Json[]) => findTask([...work, ...after]).start
  assert.equal(start(putIn, assistant("did more")), 2)
  const ended = [...work, assistant("did more")]
  assert.equal(findTask([...ended, putIn]).start, 2)
  assert.equal(findTask([...ended, putIn, work[4], assistant("did all")]).start, 2)
  assert.equal(findTask([...ended, putIn, assistant("did all")]).start, 7)
  const steers = (id: string) => id === record(putIn["info"])["id"]
  assert.equal(findTask([...ended, putIn, assistant("did all")], steers).start, 2)
})

test("a whole session fits into an answer: texts become shorter, then the oldest messages go", () => {
  const few = [user("one"), assistant("did one"), user("two"), assistant("did two")]
  assert.deepEqual(shape(projectWhole(few)), [
    "user:one",
    "assistant:did one",
    "user:two",
    "assistant:did two",
  ])
  const long = Array.from({ length: 800 }, (_, at) => assistant(`${at} ${"word ".repeat(3_000)}`))
  const shorter = projectWhole(long)
  assert.equal(shorter.length, 800)
  assert.ok(JSON.stringify(shorter).length < 6 << 20)
  const many = Array.from({ length: 30_000 }, (_, at) => assistant(`${at} ${"word ".repeat(100)}`))
  const newest = projectWhole(many)
  assert.ok(newest.length < 30_000 && JSON.stringify(newest).length < 6 << 20)
  assert.ok(shape(newest).at(-1)?.startsWith("assistant:29999 "))
  assert.deepEqual(projectWhole([]), [])
})

// shows: I7
test("a compaction summary does not end a task", () => {
  const messages = [
    user("one"),
    assistant("did"),
    user("two"),
    assistant("sum", { summary: true }),
    user("steer"),
  ]
  assert.equal(findTask(messages).start, 2)
})

test("without the answer before it a task may reach further back", () => {
  assert.equal(
    findTask([assistant("x", { finish: "tool-calls" }), user("two"), assistant("did")]).covered,
    false,
  )
  assert.equal(findTask([]).covered, false)
})

test("five earlier human messages are enough", () => {
  const messages = Array.from({ length: 7 }, (_, i) => [user(`q${i}`), assistant(`a${i}`)]).flat()
  assert.ok(isEnough(findTask(messages)))
  assert.ok(!isEnough(findTask(messages.slice(4))))
  const projected = projectMessages(messages)
  const asked = [1, 2, 3, 4, 5].map((i) => `user:q${i}`)
  assert.deepEqual(shape(projected), [...asked, "assistant:a5", "user:q6", "assistant:a6"])
})

test("earlier messages are text only", () => {
  const tool = { type: "tool", id: "t", callID: "c", tool: "bash", state: { status: "completed", input: {} } }
  const [, before, , now] = projectMessages([
    user("1"),
    assistant("a", {}, [tool]),
    user("2"),
    assistant("b", {}, [tool]),
  ])
  assert.equal((before?.["parts"] as unknown[]).length, 1)
  assert.equal((now?.["parts"] as unknown[]).length, 2)
})

test("message info is reduced to the wire's fields", () => {
  const raw = {
    info: {
      id: "msg_1",
      sessionID: "s",
      role: "assistant",
      parentID: "msg_0",
      mode: "build",
      providerID: "p",
      modelID: "m",
      finish: "stop",
      path: { cwd: "/home/me" },
      cost: 0.25,
      tokens: { total: 99, input: 10, output: 20, reasoning: 5, cache: { read: 30, write: 4 } },
      error: { name: "APIError", data: { message: "no", responseBody: "long" } },
      time: { created: 1, completed: 2 },
    },
    parts: [],
  }
  assert.deepEqual(projectMessages([raw])[0]?.["info"], {
    id: "msg_1",
    role: "assistant",
    parentID: "msg_0",
    agent: "build",
    providerID: "p",
    modelID: "m",
    finish: "stop",
    error: { name: "APIError", message: "no" },
    cost: 0.25,
    tokens: 69,
    time: { created: 1, completed: 2 },
  })
  const asked = user("x")
  Object.assign(asked.info, {
    agent: "plan",
    model: { providerID: "p", modelID: "m" },
    summary: { diffs: [] },
  })
  const info = record(projectMessages([asked])[0]?.["info"])
  assert.deepEqual(
    [info["agent"], info["providerID"], info["modelID"], info["summary"]],
    ["plan", "p", "m", undefined],
  )
})

test("parts: text, tool, compaction and other; of reasoning only what is cited; no snapshots, patches or steps", () => {
  const state = {
    status: "completed",
    input: { command: "make test" },
    output: "ok",
    title: "t",
    metadata: { exit: 2, output: "ok" },
    time: { start: 5, end: 9 },
  }
  const raw = user("hi", { metadata: { reflectd: { order: "o7" } } })
  raw.parts = [
    ...raw.parts,
    { type: "text", id: "s", text: "note", synthetic: true },
    { type: "reasoning", text: "hm" },
    { type: "reasoning", text: "As [pat-001] and [kpt_002] and [pat-001] say, [x-1] and secret thoughts" },
    { type: "step-start", snapshot: "abc" },
    { type: "tool", id: "t", callID: "c", tool: "bash", state, metadata: { secret: 1 } },
    { type: "patch", files: [] },
    { type: "compaction", auto: true },
    { type: "file", url: "data:..." },
    { type: "step-finish", reason: "stop" },
    7 as unknown as Json,
  ]
  const [text, ...rest] = projectMessages([raw])[0]?.["parts"] as Json[]
  assert.equal(text?.["order"], "o7")
  assert.deepEqual(rest, [
    { type: "text", id: "s", text: "note", synthetic: true },
    { type: "reasoning", cited: ["pat-001", "kpt_002"] },
    {
      type: "tool",
      id: "t",
      callID: "c",
      tool: "bash",
      state: {
        status: "completed",
        input: { command: "make test" },
        output: "ok",
        exit: 2,
        start: 5,
        end: 9,
      },
    },
    { type: "compaction", auto: true },
    { type: "file", id: "", name: "" },
  ])
})

test("a long output keeps 1 KB of head and 2 KB of tail and says how much is missing", () => {
  const output = "H".repeat(1024) + "x".repeat(5000) + "T".repeat(2048)
  const tool = { type: "tool", id: "t", callID: "c", tool: "bash", state: { status: "completed", output } }
  const [message] = projectMessages([assistant("a", {}, [tool])])
  const state = record(record((message?.["parts"] as Json[])[1])["state"])
  assert.equal(state["cut"], 5000)
  assert.match(String(state["output"]), /^H{1024}\n\[\.\.\. 5000 characters cut \.\.\.\]\nT{2048}$/)
})

test("a long argument is cut like a text, deep inside too", () => {
  const input = { filePath: "/a", edits: [{ newString: "y".repeat(100_000) }] }
  const tool = { type: "tool", id: "t", callID: "c", tool: "edit", state: { status: "running", input } }
  const [message] = projectMessages([assistant("a", {}, [tool])])
  assert.ok(JSON.stringify(message).length < 20_000)
})

// shows: I46
test("a cut goes to a line end where one is near, so that no half of a secret is left", () => {
  const line = "token=" + "s".repeat(40) + "\n"
  const shown = cut(line.repeat(100), { head: 100, tail: 100 }).text.split("\n")
  assert.ok(
    shown.every((one) => one === "" || one.startsWith("[...") || one + "\n" === line),
    shown.join("|"),
  )
})

// shows: I46
test("where no line end is near, the word at the cut goes: half of a token has no shape", () => {
  const token = "ghp_" + "abcdefghij0123456789".repeat(2)
  for (let shift = 0; shift < 60; shift += 7) {
    const words = cut(`${"x".repeat(shift)} ${token} `.repeat(400), { head: 1024, tail: 2048 }).text.split(
      /\s+/,
    )
    assert.deepEqual(
      words.filter((word) => /ghp|0123/.test(word) && word !== token),
      [],
    )
  }
})

test("a cut never splits a character", () => {
  const { text } = cut("😀".repeat(1000), { head: 101, tail: 101 })
  assert.equal(text, Buffer.from(text).toString())
})

test("a huge task is cut further until it fits the socket", () => {
  const tool = { type: "tool", id: "t", callID: "c", tool: "bash", state: { output: "€".repeat(3000) } }
  const messages = [user("do"), ...Array.from({ length: 1200 }, () => assistant("a", {}, [tool]))]
  const projected = projectMessages(messages)
  assert.equal(projected.length, 1201)
  assert.ok(Buffer.byteLength(JSON.stringify(projected)) < 8 << 20)
})

// shows: I36
test("whatever the host returns, nothing throws", () => {
  const odd = [null, 1, {}, { info: null, parts: {} }, { info: { role: "user" }, parts: [null, "x", {}] }]
  const projected = projectMessages(odd)
  assert.equal(projected.length, odd.length)
  assert.ok(projected.every((message) => isRecord(message["info"]) && Array.isArray(message["parts"])))
})

test("lines that tell of failures stay when the middle of an output is cut", () => {
  const fine = Array.from({ length: 400 }, (_, i) => `ok   example.org/shop/part${i} 0.1s`)
  const log = (...lines: string[]) => [...fine.slice(0, 200), ...lines, ...fine.slice(200)].join("\n")
  const limit = { head: 1024, tail: 2048 }
  const told = cutOutput(log("FAIL example.org/shop/refund 0.31s"), limit)
  assert.ok(told.text.split("\n").includes("FAIL example.org/shop/refund 0.31s"))
  assert.ok(told.text.includes(`[... ${told.cut} characters cut, not these lines ...]`))
  assert.deepEqual(cutOutput(log(), limit), cut(log(), limit))
  const many = cutOutput(log(...Array.from({ length: 1000 }, (_, i) => `FAIL part ${i}`)), limit)
  const kept = many.text.split("\n").filter((line) => line.startsWith("FAIL"))
  assert.ok(kept.length <= 24)
  assert.deepEqual([kept[0], kept.at(-1)], ["FAIL part 0", "FAIL part 999"])
  const half = cutOutput(`${"a".repeat(2000)} FAIL sk-ant-0123 ${"b".repeat(9000)}`, limit)
  assert.ok(!half.text.includes("sk-ant"))
})

test("a call that started a sub-agent names its session", () => {
  const state = { status: "completed", input: {}, metadata: { sessionId: "ses_child" } }
  const call = { type: "tool", id: "t", callID: "c", tool: "task", state }
  const [, found] = projectMessages([user("one"), assistant("did", {}, [call])])
  const part = (record(found)["parts"] as Json[]).find((each) => each["type"] === "tool")
  assert.equal(record(record(part)["state"])["session"], "ses_child")
})

test("an agent may change nothing only where no exception lets it", () => {
  const rules = (...bash: Json[]) => [{ permission: "edit", pattern: "*", action: "deny" }, ...bash]
  const all = { permission: "bash", pattern: "*", action: "deny" }
  assert.equal(mayChangeNothing(rules(all)), true)
  assert.equal(mayChangeNothing(rules(all, { permission: "bash", pattern: "npm *", action: "allow" })), false)
  assert.equal(mayChangeNothing(rules({ permission: "bash", pattern: "npm *", action: "allow" }, all)), true)
  assert.equal(mayChangeNothing(rules()), false)
})
