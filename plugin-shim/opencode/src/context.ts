/**
 * What an agent is given of what was learned about its project: asked for when a person types, and put into the
 * system text of each request, the same bytes until the host compacts the session's context, so that the
 * model's cache of the prompt stays good. The first request waits for it, at most 60 ms; without an answer by
 * then the session goes without.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { BoundedMap } from "./bounded.ts"
import type { Link } from "./link.ts"
import { sleep } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { list, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

/** How long the first request of a session waits. */
export const WAIT_MS = 60
const ASK_MS = 5000
const CATCH_UP_MS = 1000

export class Contexts {
  readonly #link: Pick<Link, "ask" | "connected" | "flushed" | "state">
  readonly #tracker: Pick<Tracker, "isChild" | "isJudge">
  readonly #asked = new BoundedMap<string, Promise<string>>(1000)
  /** What a session is given; it does not change any more. */
  readonly #given = new BoundedMap<string, string>(1000)
  readonly #client: Pick<PluginInput["client"], "app">
  #hidden: Promise<Json[]> | undefined

  constructor(
    link: Pick<Link, "ask" | "connected" | "flushed" | "state">,
    tracker: Pick<Tracker, "isChild" | "isJudge">,
    client: Pick<PluginInput["client"], "app">,
  ) {
    this.#link = link
    this.#tracker = tracker
    this.#client = client
  }

  /** A message came in: an agent will be asked soon. */
  heard(sessionID: string): void {
    if (!this.#link.connected || !this.#link.state.context || !this.#isAgent(sessionID)) return
    if (!this.#asked.has(sessionID)) this.#asked.set(sessionID, this.#ask(sessionID))
  }

  /** The host compacted the context, or a person switched reflectd: what the session was given is over. */
  renew(sessionID: string): void {
    this.#asked.delete(sessionID)
    this.#given.delete(sessionID)
    this.heard(sessionID)
  }

  /**
   * Add the text to the system texts of one request, which waits at most `ms` for it. `agent`: whose request it
   * is, where the host says so.
   */
  async system(sessionID: string, system: string[], ms = WAIT_MS, agent = ""): Promise<void> {
    if (!sessionID || !this.#isAgent(sessionID)) return
    if (await this.#isHidden(system[0] ?? "", agent)) return
    let given = this.#given.get(sessionID)
    if (given === undefined) {
      this.heard(sessionID)
      const asked = this.#asked.get(sessionID)
      given = asked ? await Promise.race([asked, sleep(ms).then(() => "")]) : ""
      given = this.#given.get(sessionID) ?? given // another request of the session was faster
      this.#given.set(sessionID, given)
    }
    if (given) system.push(given)
  }

  #isAgent(sessionID: string): boolean {
    return !this.#tracker.isJudge(sessionID) && !this.#tracker.isChild(sessionID)
  }

  /**
   * Whether a request is one of the host's own hidden agents, which name and summarise sessions. opencode 1 does
   * not say whose request it is; the system text of such an agent is its prompt, as the host lists it.
   */
  async #isHidden(system: string, agent: string): Promise<boolean> {
    const hidden = await (this.#hidden ??= this.#listHidden())
    return hidden.some(({ name, prompt }) =>
      agent ? agent === name : text(prompt) !== "" && system.startsWith(text(prompt)),
    )
  }

  async #listHidden(): Promise<Json[]> {
    const agents = (await this.#client.app.agents().catch(() => undefined))?.data
    if (agents === undefined) this.#hidden = undefined // the next request asks again
    return list(agents)
      .map(record)
      .filter((one) => one["hidden"] === true)
  }

  async #ask(sessionID: string): Promise<string> {
    // The daemon must know the session before it is asked about it.
    if (!(await this.#link.flushed(CATCH_UP_MS))) return ""
    return text((await this.#link.ask("context", { sessionID }, ASK_MS))?.["text"])
  }
}
