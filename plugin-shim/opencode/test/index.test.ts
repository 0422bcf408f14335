import assert from "node:assert/strict"
import { afterEach, beforeEach, test } from "node:test"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import plugin from "../src/index.ts"
import type { Json } from "../src/wire.ts"
import { DaemonDouble, until } from "./daemon-double.ts"
import { HostDouble } from "./host-double.ts"

let daemon: DaemonDouble
let host: HostDouble
let opened: Hooks[]
const saved = { ...process.env }

beforeEach(() => {
  daemon = new DaemonDouble()
  host = new HostDouble()
  opened = []
  process.env["REFLECTD_SOCKET"] = daemon.socket
  process.env["REFLECTD_NO_START"] = "1"
})

afterEach(async () => {
  for (const hooks of opened) await hooks.dispose?.()
  await daemon.remove()
  for (const key of ["REFLECTD_SOCKET", "REFLECTD_NO_START", "REFLECTD_CHILD", "REFLECTD_DISABLE"]) {
    delete process.env[key]
    if (saved[key] !== undefined) process.env[key] = saved[key]
  }
})

async function load(directory = daemon.folder): Promise<Hooks> {
  const hooks = await plugin.server({ client: host.client, directory } as unknown as PluginInput)
  opened.push(hooks)
  return hooks
}

const event = (hooks: Hooks, type: string, properties: Json) =>
  hooks.event?.({ event: { type, properties } } as unknown as Parameters<NonNullable<Hooks["event"]>>[0])

type Named = keyof Hooks & ("chat.message" | "experimental.chat.system.transform")
const call = (hooks: Hooks, name: Named, input: unknown, output: unknown) =>
  (hooks[name] as (input: unknown, output: unknown) => Promise<void>)(input, output)

test("one default export: id, server and setup", () => {
  assert.deepEqual(Object.keys(plugin).sort(), ["id", "server", "setup"])
})

test("what opencode 1 gives to setup, which only registers things, begins nothing", async () => {
  await daemon.start()
  const hooks = { transform: async () => ({ dispose: async () => {} }) }
  for (const odd of [undefined, null, {}, { agent: hooks, location: { directory: daemon.folder } }])
    assert.equal(plugin.setup(odd), undefined)
  await load()
  await until(() => daemon.listening)
  assert.equal(daemon.hellos.length, 1)
})

// shows: I34
test("loading does not wait for the daemon", async () => {
  const start = performance.now()
  await load()
  assert.ok(performance.now() - start < 100)
})

for (const name of ["REFLECTD_CHILD", "REFLECTD_DISABLE"])
  // shows: I9
  test(`${name}=1 means no hooks at all`, async () => {
    process.env[name] = "1"
    await daemon.start()
    assert.deepEqual(await load(), {})
    assert.equal(daemon.hellos.length, 0)
  })

test("loaded twice for a directory, there is one connection, and each event is told once", async () => {
  await daemon.start()
  const [first, second] = [await load(), await load()]
  await until(() => daemon.listening)
  await load(daemon.folder + "/other")
  await until(() => daemon.hellos.length === 2)
  const properties = { sessionID: "s" }
  for (const hooks of [first, second]) await event(hooks, "session.idle", properties)
  await event(second, "session.idle", { sessionID: "s" })
  await first.dispose?.()
  await event(second, "session.idle", { sessionID: "s" })
  await second.dispose?.()
  assert.deepEqual(daemon.kinds(), ["session.idle", "session.idle", "session.idle", "dispose"])
  assert.equal(daemon.hellos.length, 2)
  await load()
  await until(() => daemon.hellos.length === 3)
})

test("loaded twice and only one load hears events, as under acp: that load carries out the orders", async () => {
  await daemon.start()
  const [deaf, hearing] = [new HostDouble(), new HostDouble()]
  for (const [at, hears] of [
    ["/one", 0],
    ["/two", 1],
  ] as const) {
    const loads: Hooks[] = []
    for (const client of hears === 1 ? [deaf.client, hearing.client] : [hearing.client, deaf.client])
      loads.push(await plugin.server({ client, directory: daemon.folder + at } as unknown as PluginInput))
    opened.push(...loads)
    await event(loads[hears] as Hooks, "session.idle", { sessionID: at })
    await until(() => daemon.events.some(({ data }) => data["sessionID"] === at))
  }
  daemon.order({ id: "t", kind: "toast", session: "", data: { title: "a", message: "b" } })
  await until(() => daemon.results.length === 2)
  assert.deepEqual([deaf.toasts.length, hearing.toasts.length], [0, 2])
})

// shows: I34
test("hooks take whatever comes: no throw, no output, no unhandled rejection", async () => {
  const written: unknown[] = []
  const rejected: unknown[] = []
  const onRejection = (error: unknown) => rejected.push(error)
  const { write } = process.stdout
  const { write: writeError } = process.stderr
  process.on("unhandledRejection", onRejection)
  process.stdout.write = ((chunk: unknown) => written.push(chunk) > 0) as typeof write
  process.stderr.write = ((chunk: unknown) => written.push(chunk) > 0) as typeof writeError
  try {
    const hooks = await load()
    for (const odd of [undefined, null, 1, "x", [], {}, { event: null }, { sessionID: {} }])
      for (const hook of Object.values({ ...hooks, dispose: () => {} }) as ((
        ...args: unknown[]
      ) => unknown)[])
        for (const output of [undefined, null, {}, { parts: 1 }]) await hook(odd, output)
    await new Promise((resolve) => setTimeout(resolve, 20))
  } finally {
    process.stdout.write = write
    process.stderr.write = writeError
    process.off("unhandledRejection", onRejection)
  }
  assert.deepEqual([written, rejected], [[], []])
})

test("a turn arrives in order, and dispose flushes it", async () => {
  await daemon.start()
  const hooks = await load()
  await until(() => daemon.listening)
  const parts = [{ type: "text", text: "hi" }]
  await call(hooks, "chat.message", { sessionID: "s" }, { message: { id: "msg_1", agent: "build" }, parts })
  await event(hooks, "session.status", { sessionID: "s", status: { type: "busy" } })
  await event(hooks, "session.idle", { sessionID: "s" })
  await hooks.dispose?.()
  assert.deepEqual(daemon.kinds(), ["chat.message", "session.status", "session.idle", "dispose"])
})

test("dispose without a daemon takes no time", async () => {
  const hooks = await load()
  await event(hooks, "session.idle", { sessionID: "s" })
  const start = performance.now()
  await hooks.dispose?.()
  assert.ok(performance.now() - start < 100)
})

test("a judge session sees exactly one system text; other sessions keep theirs", async () => {
  await daemon.start()
  const hooks = await load()
  await until(() => daemon.listening)
  const seen: string[][] = []
  host.prompt = async ({ path }) => {
    for (const sessionID of [path.id, "ses_work"]) {
      const output = { system: ["base", "env"] }
      await call(hooks, "experimental.chat.system.transform", { sessionID }, output)
      seen.push(output.system)
    }
    return { data: { info: {}, parts: [] } }
  }
  daemon.order({
    id: "o1",
    kind: "evaluate",
    session: "s",
    data: { system: "only", text: "x", timeout_ms: 1000 },
  })
  await until(() => daemon.results.length === 1)
  assert.deepEqual(seen, [["only"], ["base", "env"]])
})

test("the judge's agent is hidden and may do nothing", async () => {
  const hooks = await load()
  const config = { agent: { mine: { mode: "primary" } } } as unknown as Parameters<
    NonNullable<Hooks["config"]>
  >[0]
  await hooks.config?.(config)
  const { mine, "reflectd-judge": judge } = config.agent ?? {}
  assert.ok(mine)
  assert.deepEqual([judge?.["hidden"], judge?.mode, judge?.permission], [true, "subagent", { "*": "deny" }])
})

test("/reflect: added to the commands, marked in its message, known in the agent's shell", async () => {
  const hooks = await load()
  const config: { command?: Record<string, Json> } = { command: { mine: { template: "x" } } }
  await hooks.config?.(config as Parameters<NonNullable<Hooks["config"]>>[0])
  assert.deepEqual(Object.keys(config.command ?? {}).sort(), ["mine", "reflect"])
  const template = String(config.command?.["reflect"]?.["template"])
  const run = (name: string, input: Json, output: Json) =>
    (hooks[name as keyof Hooks] as (input: Json, output: Json) => Promise<void>)(input, output)
  const parts: Json[] = [{ type: "text", text: template }]
  await run("command.execute.before", { command: "reflect", sessionID: "s", arguments: "learn x" }, { parts })
  assert.deepEqual(parts[0]?.["metadata"], { reflectd: { command: "learn x" } })
  const env: Record<string, string> = {}
  await run("shell.env", { cwd: "/", sessionID: "ses_1" }, { env })
  await run("shell.env", { cwd: "/" }, { env })
  assert.deepEqual(env, { REFLECTD_SESSION: "ses_1" })
})

test("/reflect: a person's own command of that name stays theirs", async () => {
  const hooks = await load()
  const config: { command?: Record<string, Json> } = { command: { reflect: { template: "mine" } } }
  await hooks.config?.(config as Parameters<NonNullable<Hooks["config"]>>[0])
  assert.deepEqual(config.command, { reflect: { template: "mine" } })
})
