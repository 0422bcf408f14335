/**
 * The opencode side of reflectd: a plugin that reports what happens in a session to the daemon and carries
 * out its few orders. It never prints, never throws into the host and never makes it wait, except for the
 * one question of `run` mode. Without a daemon opencode behaves as if this were not installed.
 */
import type { Hooks, PluginInput, PluginModule } from "@opencode-ai/plugin"
import { findSocket, isAbsent, startDaemon } from "./daemon.ts"
import { chatMessage, factsOf } from "./events.ts"
import { Gate } from "./gate.ts"
import { AGENT, Judges } from "./judge.ts"
import { Link } from "./link.ts"
import { modeOf } from "./mode.ts"
import { Orders } from "./orders.ts"
import { sleep } from "./pump.ts"
import { Tracker } from "./tracker.ts"
import { JUDGE_AGENT, list, record, text, VERSION } from "./wire.ts"

const SETTLE_MS = 1500
const FLUSH_MS = 500
const CLOSE_MS = 3000

const env = process.env
const isOff = () => env["REFLECTD_CHILD"] === "1" || env["REFLECTD_DISABLE"] === "1"

/** A hook that cannot fail: an error in one would cost the person a turn. */
function safe<A extends unknown[]>(hook: (...args: A) => unknown, log: (message: string) => void) {
  return async (...args: A): Promise<void> => {
    try {
      await hook(...args)
    } catch (error) {
      log(`hook: ${error}`)
    }
  }
}

function start({ client, directory }: PluginInput): Hooks {
  // Installed twice (globally and in the project), opencode loads us twice for one directory.
  const loaded = globalThis as { [key: symbol]: unknown }
  const key = Symbol.for(`reflectd.loaded:${directory}`)
  if (loaded[key]) return {}
  loaded[key] = true

  const debug = env["REFLECTION_DEBUG"] === "1"
  const log = (message: string) => {
    if (!debug) return
    const body = { service: "reflectd", level: "debug", message } as const
    void Promise.resolve(client.app.log({ body })).catch(() => {})
  }
  const mode = modeOf(process.argv)
  const tracker = new Tracker()
  const link = new Link({
    hello: {
      host: "opencode",
      mode,
      pid: process.pid,
      directory,
      version: VERSION,
      ...(debug && { debug }),
    },
    socket: findSocket,
    onOrder: (order) => orders.accept(order),
    onDown: (error) => isAbsent(error) && startDaemon() && log("started reflectd"),
    log,
  })
  const judges = new Judges(client, tracker, link)
  const orders = new Orders(client, tracker, judges, (result) => link.result(result))
  const gate = new Gate(link, orders, tracker)
  link.open()

  /** The last facts and results go out, if somebody takes them. */
  async function finish(): Promise<void> {
    const live = await link.flushed(FLUSH_MS)
    if (live && mode === "run") await link.ask("settle", {}, SETTLE_MS)
    else judges.cancelAll()
    await orders.settle(live ? FLUSH_MS : 0)
    if (!live) return
    await link.answered(FLUSH_MS)
    link.emit("dispose", {})
    await link.flushed(FLUSH_MS)
  }

  async function close(): Promise<void> {
    delete loaded[key]
    gate.close()
    await Promise.race([finish(), sleep(CLOSE_MS)])
    link.close()
  }

  return {
    config: safe((config) => {
      config.agent = { ...config.agent, [JUDGE_AGENT]: AGENT as NonNullable<typeof config.agent>[string] }
    }, log),
    event: safe(({ event }) => {
      for (const { kind, data } of factsOf(event, tracker)) link.emit(kind, data)
      gate.see(event)
    }, log),
    "chat.message": safe((input, { message, parts }) => {
      const messageID = text(record(message)["id"]) || text(input.messageID)
      const agent = text(record(message)["agent"]) || text(input.agent)
      const fact = chatMessage(text(input.sessionID), messageID, agent, list(parts), tracker)
      if (!fact) return
      if (fact.data["human"]) gate.heard(text(input.sessionID))
      link.emit(fact.kind, fact.data)
    }, log),
    "experimental.chat.system.transform": safe((input, { system }) => {
      const only = judges.system(text(input.sessionID))
      if (only !== undefined) system.splice(0, system.length, only)
    }, log),
    ...(mode === "run" && {
      "experimental.text.complete": safe(
        (input, output) => gate.textComplete(text(input.sessionID), text(input.messageID), text(output.text)),
        log,
      ),
    }),
    dispose: safe(close, log),
  }
}

const server: PluginModule["server"] = async (input) => {
  try {
    return isOff() ? {} : start(input)
  } catch {
    return {}
  }
}

/** opencode's newer plugin API calls this too; there is nothing for us in it. */
const setup = (): void => {}

export default { id: "reflectd", server, setup }
