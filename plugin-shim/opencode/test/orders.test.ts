import assert from "node:assert/strict"
import { afterEach, beforeEach, test } from "node:test"
import { chatMessage, factsOf } from "../src/events.ts"
import { Judges } from "../src/judge.ts"
import { Link } from "../src/link.ts"
import { Orders } from "../src/orders.ts"
import { sleep } from "../src/pump.ts"
import { Tracker } from "../src/tracker.ts"
import { record } from "../src/wire.ts"
import type { Json } from "../src/wire.ts"
import { DaemonDouble, until } from "./daemon-double.ts"
import { assistant, HostDouble, user } from "./host-double.ts"

const S = "ses_1"

let daemon: DaemonDouble
let host: HostDouble
let tracker: Tracker
let link: Link
let judges: Judges
let orders: Orders
let renewed: string[]
let next = 0

beforeEach(async () => {
  daemon = await new DaemonDouble().start()
  host = new HostDouble()
  host.sessions.set(S, { id: S, title: "work", directory: "/p" })
  tracker = new Tracker()
  link = new Link({
    hello: { host: "opencode", mode: "serve", pid: 1, directory: "/p" },
    socket: () => daemon.socket,
    onOrder: (order) => orders.accept(order),
  })
  judges = new Judges(host.client, tracker, link)
  renewed = []
  const contexts = { renew: (id: string) => void renewed.push(id) }
  orders = new Orders(host.client, tracker, judges, contexts, (result) => link.result(result))
  link.open()
  await until(() => daemon.listening)
})

afterEach(async () => {
  link.close()
  await daemon.remove()
})

/** Send an order through the socket and wait for its result. */
async function send(kind: string, data: Json = {}, more: Json = {}) {
  const id = `o${++next}`
  daemon.order({ id, kind, session: S, data, ...more })
  return resultOf(String(more["id"] ?? id))
}

async function resultOf(id: string) {
  await until(() => daemon.results.some((result) => result.id === id))
  const { instance: _, ...result } = daemon.results.findLast((one) => one.id === id) ?? assert.fail()
  return result
}

test("a session whose context is renewed is asked about again", async () => {
  const { status } = await send("renew")
  assert.deepEqual([status, renewed], ["done", [S]])
})

const only = { if: { task: "msg_1", turn: "msg_2" } }
const finishTurn = () => {
  chatMessage(S, "msg_1", "build", [{ type: "text", text: "hi" }], tracker)
  factsOf(
    { type: "message.updated", properties: { info: { sessionID: S, id: "msg_2", role: "assistant" } } },
    tracker,
  )
  factsOf({ type: "session.idle", properties: { sessionID: S } }, tracker)
}

const stored = (id: string) =>
  factsOf({ type: "message.updated", properties: { info: { sessionID: S, id, role: "user" } } }, tracker)

test("feedback is sent with agent, model and our mark", async () => {
  finishTurn()
  const model = { providerID: "p", modelID: "m" }
  const result = await send("feedback", { text: "go on", agent: "plan", model }, { ...only, id: "fb" })
  assert.deepEqual(result, { id: "fb", status: "done" })
  const parts = [{ type: "text", text: "go on", metadata: { reflectd: { order: "fb", kind: "feedback" } } }]
  assert.deepEqual(host.named("promptAsync"), [{ path: { id: S }, body: { parts, agent: "plan", model } }])
})

// shows: I42
test("an order id is carried out once; its result is repeated", async () => {
  finishTurn()
  await send("feedback", { text: "x" }, { ...only, id: "same" })
  daemon.order({ id: "same", kind: "feedback", session: S, data: { text: "x" }, ...only })
  await until(() => daemon.results.length === 2)
  assert.equal(host.named("promptAsync").length, 1)
  assert.deepEqual(daemon.results[0], daemon.results[1])
})

test("two feedbacks at once: the second is stale although the host did not say busy yet", async () => {
  finishTurn()
  daemon.order({ id: "a", kind: "feedback", session: S, data: { text: "x" }, ...only })
  daemon.order({ id: "b", kind: "feedback", session: S, data: { text: "x" }, ...only })
  assert.equal((await resultOf("a")).status, "done")
  assert.deepEqual(await resultOf("b"), { id: "b", status: "stale", error: "busy" })
})

// shows: I14
test("feedback is stale when a person typed", async () => {
  finishTurn()
  chatMessage(S, "msg_3", "build", [{ type: "text", text: "wait" }], tracker)
  const sent = send("feedback", { text: "x" }, only)
  factsOf({ type: "session.status", properties: { sessionID: S, status: { type: "busy" } } }, tracker)
  factsOf({ type: "session.idle", properties: { sessionID: S } }, tracker)
  assert.equal((await sent).status, "stale")
  assert.equal(host.named("promptAsync").length, 0)
})

// shows: I4, I14
test("feedback waits until it is clear that nobody answers what another plugin put in", async () => {
  finishTurn()
  chatMessage(S, "msg_3", "build", [{ type: "text", text: "context" }], tracker)
  stored("msg_3")
  assert.equal((await send("feedback", { text: "x" }, only)).status, "done")
  assert.notEqual(tracker.peek(S)?.human, "msg_3")
})

// shows: I14
test("a message that another plugin still looks at is a person's until the host has stored it", async () => {
  finishTurn()
  chatMessage(S, "msg_3", "build", [{ type: "text", text: "never mind" }], tracker)
  assert.equal((await send("feedback", { text: "x" }, only)).status, "stale")
  assert.equal(host.named("promptAsync").length, 0)
})

test("of a session that was silent since we were loaded, the host is asked whether it is busy", async () => {
  host.status = { [S]: { type: "busy" } }
  assert.equal((await send("feedback", { text: "x" }, only)).status, "stale")
  host.status = {}
  host.sessions.set("ses_2", {})
  assert.equal((await send("feedback", { text: "x" }, { ...only, session: "ses_2" })).status, "done")
})

// shows: I1
test("a busy daemon that hears late of a judge session does not end the judgement", async () => {
  daemon.busy = sleep(2500)
  const result = await send("evaluate", { system: "You judge.", text: "x", timeout_ms: 60_000 })
  assert.equal(result.status, "done")
})

test("feedback asks for what the person's message asked for", async () => {
  const wish = { variant: "high", system: "In Latin.", tools: { web: false }, format: { type: "json" } }
  chatMessage(S, "msg_1", "build", [{ type: "text", text: "hi" }], tracker, wish)
  factsOf({ type: "session.status", properties: { sessionID: S, status: { type: "busy" } } }, tracker)
  factsOf({ type: "session.idle", properties: { sessionID: S } }, tracker)
  assert.equal(
    (await send("feedback", { text: "x" }, { ...only, if: { task: "msg_1", turn: "" } })).status,
    "done",
  )
  const { parts: _, ...rest } = record(record(host.named("promptAsync")[0])["body"])
  assert.deepEqual(rest, wish)
})

test("a person's message that came before this plugin is read for what it asked for", async () => {
  host.messages.set(S, [{ info: { id: "msg_1", role: "user", model: { variant: "low" } }, parts: [] }])
  await send("feedback", { text: "x" }, { ...only, if: { task: "msg_1", turn: "" } })
  assert.equal(record(record(host.named("promptAsync")[0])["body"])["variant"], "low")
})

// shows: I11
test("feedback is stale when messages were taken back, also if no event told of it", async () => {
  finishTurn()
  host.sessions.set(S, { id: S, title: "work", directory: "/p", revert: { messageID: "msg_1" } })
  assert.equal((await send("feedback", { text: "x" }, only)).status, "stale")
  assert.equal(host.named("promptAsync").length, 0)
})

test("read says when the agent of the task may change nothing", async () => {
  const deny = (permission: string) => ({ permission, pattern: "*", action: "deny" })
  const all = { permission: "*", pattern: "*", action: "allow" }
  host.agents = [
    { name: "reader", permission: [all, deny("edit"), deny("bash")] },
    { name: "build", permission: [deny("edit"), deny("bash"), all] },
  ]
  const read = async (agent: string, tools?: Json) => {
    const asked = user("do it")
    host.messages.set(S, [{ ...asked, info: { ...asked.info, agent, ...(tools && { tools }) } }])
    return record((await send("read")).data)["readonly"]
  }
  assert.equal(await read("reader"), true)
  assert.equal(await read("build"), undefined)
  assert.equal(await read("build", { edit: false, bash: false }), true)
  assert.equal(await read("nobody"), undefined)
})

test("feedback that the host refuses has failed, and the session counts as idle again", async () => {
  finishTurn()
  host.promptAsync = () => ({ error: { name: "BadRequest", data: { message: "no" } } })
  assert.deepEqual(await send("feedback", { text: "x" }, { ...only, id: "bad" }), {
    id: "bad",
    status: "failed",
    error: "BadRequest: no",
  })
  assert.equal(tracker.isBusy(S), false)
  host.promptAsync = () => Promise.reject(new Error("gone"))
  assert.equal((await send("feedback", { text: "x" }, only)).error, "gone")
})

test("feedback without a condition is not sent", async () => {
  assert.equal((await send("feedback", { text: "x" })).status, "failed")
  assert.equal(host.named("promptAsync").length, 0)
})

test("a toast is shown; an unknown order is not obeyed", async () => {
  assert.equal((await send("toast", { title: "t", message: "m", variant: "purple" })).status, "done")
  assert.deepEqual(host.toasts, [{ title: "t", message: "m", variant: "info", duration: 10_000 }])
  const before = host.calls.length
  for (const kind of ["session.delete", "prod", "constructor", "__proto__"])
    assert.deepEqual((await send(kind, {}, { id: kind })).error, `unknown order ${kind}`)
  assert.equal(host.calls.length, before)
})

test("what is no order is ignored", async () => {
  for (const odd of [null, 1, [], {}, { id: 1, kind: "toast" }, { id: "x" }]) orders.accept(odd)
  assert.equal(host.calls.length, 0)
})

test("read returns the projected session", async () => {
  const asked = user("do it")
  host.messages.set(S, [asked, assistant("did it")])
  const { status, data } = await send("read")
  assert.equal(status, "done")
  assert.equal(data?.["missing"], false)
  assert.equal(data?.["busy"], false)
  assert.deepEqual(data?.["session"], { id: S, title: "work", directory: "/p" })
  assert.deepEqual(data?.["todos"], [{ id: "1", content: "do it", status: "pending", priority: "high" }])
  assert.equal((data?.["messages"] as unknown[]).length, 2)
})

test("read of a whole session has every message in full, in one request, and says so", async () => {
  const call = {
    type: "tool",
    tool: "bash",
    callID: "c",
    state: { status: "completed", output: "42 passed" },
  }
  host.messages.set(S, [user("first"), assistant("done", {}, [call]), user("second"), assistant("done too")])
  const { data } = await send("read", { whole: true })
  assert.equal(data?.["whole"], true)
  assert.equal((data?.["messages"] as unknown[]).length, 4)
  assert.ok(JSON.stringify(data?.["messages"]).includes("42 passed"))
  assert.equal((await send("read")).data?.["whole"], undefined)
  assert.deepEqual(host.named("messages")[0]?.["query"], undefined)
})

test("read goes further back until the task is covered, and no further", async () => {
  const long = Array.from({ length: 300 }, (_, i) => assistant(`step ${i}`, { finish: "tool-calls" }))
  const task = user("the task")
  host.messages.set(S, [user("old"), assistant("old answer"), task, ...long])
  const { data } = await send("read")
  const messages = data?.["messages"] as Json[]
  assert.equal(messages.length, 303)
  assert.equal(record(messages[2]?.["info"])["id"], task.info.id)
  assert.deepEqual(
    host.named("messages").map((args) => record(args["query"])["limit"]),
    [60, 240, 960],
  )
})

// shows: I36
test("a deleted session is missing; {} from messages() is no messages", async () => {
  assert.equal((await send("read", {}, { session: "ses_gone" })).data?.["missing"], true)
  for (const odd of [{}, undefined, "x"]) {
    host.messages.set(S, odd)
    assert.deepEqual((await send("read")).data?.["messages"], [])
  }
})

test("read says busy as the host does", async () => {
  factsOf({ type: "session.status", properties: { sessionID: S, status: { type: "retry" } } }, tracker)
  assert.equal((await send("read")).data?.["busy"], true)
})

const evaluate = { system: "judge!", text: "the case", timeout_ms: 60_000 }

// shows: I1, I27, I37
test("a judge is announced before it is prompted, has no tools, and is deleted", async () => {
  const info = { providerID: "p", modelID: "m", tokens: { input: 7, output: 3, reasoning: 1 }, cost: 0.5 }
  let announced: string[] = []
  let system: string | undefined
  host.prompt = ({ path }) => {
    announced = daemon.kinds()
    system = judges.system(path.id)
    return {
      data: {
        info,
        parts: [
          { type: "reasoning", text: "hm" },
          { type: "text", text: "{}" },
        ],
      },
    }
  }
  const model = { providerID: "p", modelID: "m" }
  const { status, data } = await send("evaluate", { ...evaluate, model })
  assert.equal(status, "done")
  const session = String(data?.["session"])
  assert.deepEqual(data, { text: "{}", session, model, tokens: { input: 7, output: 4 }, cost: 0.5 })
  assert.deepEqual(announced, ["judge.created"])
  assert.equal(system, "judge!")
  assert.deepEqual(host.named("create"), [{ body: { title: "[reflectd judge]" } }])
  const [asked] = host.named("prompt")
  assert.deepEqual(asked?.["body"], {
    agent: "reflectd-judge",
    tools: { "*": false },
    parts: [{ type: "text", text: "the case" }],
    model,
  })
  assert.equal(host.sessions.has(session), false)
  assert.ok(tracker.isJudge(session))
})

// shows: I41
test("cached input and thinking are paid for, so they count; a host that names none is not guessed", async () => {
  const used = async (tokens: unknown) => {
    host.prompt = () => ({ data: { info: { tokens, cost: 0.25 }, parts: [] } })
    const { data } = await send("evaluate", evaluate)
    assert.equal(data?.["cost"], 0.25)
    return data?.["tokens"]
  }
  const tokens = { input: 10, output: 20, reasoning: 300, cache: { read: 4000, write: 50_000 } }
  assert.deepEqual(await used(tokens), { input: 54_010, output: 320 })
  assert.deepEqual(await used({ input: 10, output: 20 }), { input: 10, output: 20 })
  assert.deepEqual(await used({ input: 10, output: 20, reasoning: "x", cache: null }), {
    input: 10,
    output: 20,
  })
  assert.equal(await used({ cache: { read: 1 } }), undefined)
  assert.equal(await used(undefined), undefined)
})

// shows: I1
test("a judge that could not be announced is not prompted", async () => {
  daemon.poison = "judge.created"
  const result = await send("evaluate", evaluate)
  assert.equal(result.status, "failed")
  assert.equal(host.named("prompt").length, 0)
  assert.equal(host.sessions.size, 1)
})

test("a judge that fails, hangs or is cancelled is deleted and answered", async () => {
  host.prompt = () => ({
    data: { info: { error: { name: "APIError", data: { message: "quota" } } }, parts: [] },
  })
  assert.equal((await send("evaluate", evaluate)).error, "APIError: quota")
  host.prompt = () => ({
    data: { info: { error: { name: "APIError", data: { message: "no key", statusCode: 401 } } }, parts: [] },
  })
  assert.equal((await send("evaluate", evaluate)).error, "APIError 401: no key")
  host.prompt = () => Promise.reject(new Error("boom"))
  assert.equal((await send("evaluate", evaluate)).error, "boom")
  host.prompt = () => new Promise(() => {})
  assert.match((await send("evaluate", { ...evaluate, timeout_ms: 30 })).error ?? "", /no answer in 30 ms/)
  const asked = host.named("prompt").length // on a busy machine the 30 ms may be over before the prompt
  daemon.order({ id: "slow", kind: "evaluate", session: S, data: evaluate })
  await until(() => host.named("prompt").length === asked + 1)
  assert.equal((await send("cancel", { order: "slow" })).status, "done")
  assert.deepEqual(await resultOf("slow"), { id: "slow", status: "failed", error: "cancelled" })
  assert.equal(host.named("abort").length, 2)
  assert.equal(host.named("delete").length, 5)
  assert.equal(host.sessions.size, 1)
})

test("settle stops the judges that do not finish in time", async () => {
  host.prompt = () => new Promise(() => {})
  daemon.order({ id: "hang", kind: "evaluate", session: S, data: evaluate })
  await until(() => host.named("prompt").length === 1)
  await orders.settle(10)
  assert.equal((await resultOf("hang")).status, "failed")
  assert.equal(host.sessions.size, 1)
})

test("delete removes judge sessions and nothing else", async () => {
  host.sessions.set("ses_left", { id: "ses_left", title: "[reflectd judge]" })
  assert.equal((await send("delete", { sessions: ["ses_left", S, "ses_gone", 7] })).status, "done")
  assert.deepEqual([...host.sessions.keys()], [S])
  assert.deepEqual(host.named("abort"), [{ path: { id: "ses_left" } }])
})

// shows: I46
test("providers gives ids of providers and models, and nothing of the keys beside them", async () => {
  const model = { id: "m", name: "M", options: { apiKey: "sk-model" }, headers: { authorization: "sk-head" } }
  host.providers = {
    data: {
      providers: [
        {
          id: "acme",
          key: "sk-key",
          env: ["ACME_KEY"],
          options: { apiKey: "sk-opt" },
          models: { "m-1": model },
        },
        { id: "old", models: { gone: { status: "deprecated" }, "old-1": { status: "active" } } },
      ],
      default: { acme: "m-1" },
    },
  }
  const { status, data } = await send("providers", {}, { session: "" })
  assert.equal(status, "done")
  assert.deepEqual(data, {
    providers: [
      { id: "acme", models: ["m-1"] },
      { id: "old", models: ["old-1"] },
    ],
  })
  assert.doesNotMatch(JSON.stringify(daemon.results), /sk-/)
})

// shows: I36, I44
test("providers of another form are left out, and what is sent is bounded", async () => {
  const many = Object.fromEntries(Array.from({ length: 6000 }, (_, i) => [`m-${i}`, {}]))
  const odd = [null, 7, {}, { id: 1, models: { a: {} } }, { id: "x", models: [] }, { id: "y" }]
  const long = { id: "z", models: { ["m".repeat(201)]: {} } }
  const providers = [...odd, long, { id: "big", models: many }, { id: "late", models: { a: {} } }]
  host.providers = { data: { providers } }
  const found = (await send("providers")).data?.["providers"] as { id: string; models: string[] }[]
  assert.deepEqual(
    found.map((one) => [one.id, one.models.length]),
    [["big", 5000]],
  )
  for (const nothing of [{ data: {} }, { data: { providers: {} } }]) {
    host.providers = nothing
    assert.deepEqual((await send("providers")).data, { providers: [] })
  }
  host.providers = { error: { name: "Broken", data: { message: "no" } } }
  assert.equal((await send("providers")).error, "Broken: no")
})

test("providers are read again each time they are asked for", async () => {
  await send("providers", {}, { id: "twice" })
  daemon.order({ id: "twice", kind: "providers", session: "", data: {} })
  await until(() => daemon.results.length === 2)
  assert.equal(host.named("providers").length, 2)
})

test("history: a page when it is asked for; read anew each time, and a failure is said", async () => {
  host.sessions.set(S, { id: S, title: "work", directory: "/p", time: { updated: 5 } })
  host.messages.set(S, [user("Use bun")])
  const first = await send("history", { after: "", limit: 20 }, { id: "h" })
  assert.equal(first.status, "done")
  assert.deepEqual(record(first.data)["more"], false)
  const after = record(first.data)["after"]
  assert.deepEqual((await send("history", { after, limit: 20 })).data, { sessions: [], after, more: false })
  host.sessions.set("ses_2", { id: "ses_2", title: "t", time: { updated: 6 } })
  daemon.order({ id: "h", kind: "history", session: S, data: { after: "", limit: 20 } })
  await until(() => daemon.results.filter(({ id }) => id === "h").length === 2)
  assert.equal((record(daemon.results.at(-1))["data"] as Json)["sessions"] instanceof Array, true)
})
