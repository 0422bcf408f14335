/**
 * What an agent is given of what was learned about its project: asked for when a person types, and put into the
 * system text of each request, the same bytes until the host compacts the session's context, so that the
 * model's cache of the prompt stays good. The first request waits for it, at most 60 ms; without an answer by
 * then the session goes without.
 */
import { BoundedMap } from "./bounded.ts"
import type { Link } from "./link.ts"
import { sleep } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { text } from "./wire.ts"

/** How long the first request of a session waits. */
export const WAIT_MS = 60
const ASK_MS = 5000
const CATCH_UP_MS = 1000
/** How the system texts of the host's own agents begin that only name or summarise a session. */
const HELPERS = /^\s*You are (?:a title generator|[^\n]{0,80}\bsummari[sz])/i

export class Contexts {
  readonly #link: Pick<Link, "ask" | "connected" | "flushed" | "state">
  readonly #tracker: Pick<Tracker, "isChild" | "isJudge">
  readonly #asked = new BoundedMap<string, Promise<string>>(1000)
  /** What a session is given; it does not change any more. */
  readonly #given = new BoundedMap<string, string>(1000)

  constructor(
    link: Pick<Link, "ask" | "connected" | "flushed" | "state">,
    tracker: Pick<Tracker, "isChild" | "isJudge">,
  ) {
    this.#link = link
    this.#tracker = tracker
  }

  /** A message came in: an agent will be asked soon. */
  heard(sessionID: string): void {
    if (!this.#link.connected || !this.#link.state.context || !this.#isAgent(sessionID)) return
    if (!this.#asked.has(sessionID)) this.#asked.set(sessionID, this.#ask(sessionID))
  }

  /** The host compacted the context: what the session was given is gone. */
  compacted(sessionID: string): void {
    this.#asked.delete(sessionID)
    this.#given.delete(sessionID)
    this.heard(sessionID)
  }

  /** Add the text to the system texts of one request, which waits at most `ms` for it. */
  async system(sessionID: string, system: string[], ms = WAIT_MS): Promise<void> {
    if (!sessionID || !this.#isAgent(sessionID) || HELPERS.test(system[0] ?? "")) return
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

  async #ask(sessionID: string): Promise<string> {
    // The daemon must know the session before it is asked about it.
    if (!(await this.#link.flushed(CATCH_UP_MS))) return ""
    return text((await this.#link.ask("context", { sessionID }, ASK_MS))?.["text"])
  }
}
