/**
 * What the loads of one directory in one process share. opencode may load the plugin twice for it. When it is
 * installed globally and in the project, both loads hear every event; under `opencode acp` only the second
 * hears any. So all loads share one connection to the daemon, an event counts once, and orders are carried out
 * through the load that heard something last.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { Contexts } from "./context.ts"
import { findSocket, isAbsent, startDaemon } from "./daemon.ts"
import { Judges } from "./judge.ts"
import { Link } from "./link.ts"
import { Orders, TOAST_MS } from "./orders.ts"
import { sleep } from "./pump.ts"
import { Tracker } from "./tracker.ts"
import { record, VERSION } from "./wire.ts"
import type { Mode } from "./wire.ts"

export type Client = PluginInput["client"]

/** One load of the plugin; for version 2 of opencode `client` is ours. */
export interface Load {
  readonly client: Client
}

const SETTLE_MS = 1500
const FLUSH_MS = 500
const CLOSE_MS = 3000

export class Site {
  protected readonly tracker = new Tracker()
  protected readonly link: Link
  protected readonly judges: Judges
  protected readonly contexts: Contexts
  protected readonly orders: Orders
  /** The loads that live; the last one heard something last. */
  #loads: Load[] = []
  #told = ""
  readonly #mode: Mode
  readonly #onClose: () => void

  /** `onClose` is called when the last load leaves. */
  constructor(directory: string, mode: Mode, onClose: () => void, Judging = Judges) {
    this.#mode = mode
    this.#onClose = onClose
    const debug = process.env["REFLECTION_DEBUG"] === "1"
    this.link = new Link({
      hello: {
        host: "opencode",
        mode,
        pid: process.pid,
        directory,
        version: VERSION,
        ...(debug && { debug }),
      },
      socket: findSocket,
      onOrder: (order) => this.orders.accept(order),
      onDown: (error) => {
        const tell = (why: string) => this.#tell(why)
        if (isAbsent(error) && startDaemon(process.env, Date.now(), tell)) this.log("started reflectd")
      },
      log: (message) => this.log(message),
    })
    const client = new Proxy({} as Client, {
      get: (_, name) => record(this.#loads.at(-1)?.client)[name as string],
    })
    this.judges = new Judging(client, this.tracker, this.link)
    this.contexts = new Contexts(this.link, this.tracker, client)
    this.orders = new Orders(client, this.tracker, this.judges, this.contexts, (result) =>
      this.link.result(result),
    )
    this.link.open()
  }

  protected log(message: string): void {
    const client = this.#loads.at(-1)?.client
    if (process.env["REFLECTION_DEBUG"] !== "1" || !client) return
    const body = { service: "reflectd", level: "debug", message } as const
    void Promise.resolve(client.app.log({ body })).catch(() => {})
  }

  /** Tell the person once why the daemon does not start. */
  #tell(message: string): void {
    const client = this.#loads.at(-1)?.client
    if (message === this.#told || !client) return
    this.#told = message
    const body = { title: "reflectd", message, variant: "error", duration: TOAST_MS } as const
    void Promise.resolve(client.tui.showToast({ body })).catch(() => {})
  }

  protected add(load: Load): void {
    this.#loads.push(load)
  }

  /** This load heard something, so the host carries out what is asked of it. */
  protected hears(load: Load): void {
    if (this.#loads.at(-1) === load || !this.#loads.includes(load)) return
    this.#loads = [...this.#loads.filter((other) => other !== load), load]
  }

  /** The last load that leaves says goodbye to the daemon, in at most 3 s. */
  protected async leave(load: Load): Promise<void> {
    if (!this.#loads.includes(load)) return
    if (this.#loads.length > 1) {
      this.#loads = this.#loads.filter((other) => other !== load)
      return
    }
    this.#onClose()
    await Promise.race([this.#finish(), sleep(CLOSE_MS)])
    this.link.close()
    this.#loads = []
  }

  /** Send the last facts and results, if the daemon is there. */
  async #finish(): Promise<void> {
    const live = await this.link.flushed(FLUSH_MS)
    if (live && this.#mode === "run") {
      await this.link.ask("settle", {}, SETTLE_MS)
    } else {
      if (live) await this.#goodbye() // before judges end, or that would look like a fault of theirs
      this.judges.cancelAll()
    }
    await this.orders.settle(live ? FLUSH_MS : 0)
    if (!live) return
    await this.link.answered(FLUSH_MS)
    if (this.#mode === "run") await this.#goodbye()
  }

  async #goodbye(): Promise<void> {
    this.link.emit("dispose", {})
    await this.link.flushed(FLUSH_MS)
  }
}

/** The site of the directory, made when there is none. It is shared by all copies of the plugin in the process. */
export function siteOf<S>(key: string, make: (onClose: () => void) => S): S {
  const all = globalThis as { [key: symbol]: S | undefined }
  const symbol = Symbol.for(key)
  return (all[symbol] ??= make(() => delete all[symbol]))
}
