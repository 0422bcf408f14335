/**
 * opencode 2: the plugin reads the host's events and calls its API. Contract-tested, not run: the tests replay
 * events that were recorded on a preview. Nothing here makes the host wait, but for the goodbye, which takes at
 * most 3 s, and for a moment the first request of a session.
 */
import { resolve } from "node:path"
import { BoundedSet } from "../bounded.ts"
import { WAIT_MS } from "../context.ts"
import { chatMessage, factsOf } from "../events.ts"
import { sleep } from "../pump.ts"
import { Site } from "../site.ts"
import type { Load } from "../site.ts"
import { isRecord, list, record, text } from "../wire.ts"
import { callOf } from "./calls.ts"
import { clientOf } from "./client.ts"
import { sessionOf, Translator } from "./events.ts"
import type { OldEvent } from "./events.ts"
import { JudgesV2 } from "./judge.ts"

const LEARN_MS = 1000
const STEP_MS = 5
const NO_QUESTION = new Set(["session.created", "session.deleted", "session.removed"])
const RETRY_MS = { first: 1000, most: 60_000 }

/** Whether the context is one of opencode 2: that of opencode 1 only registers things. */
export const hasEvents = (context: unknown): boolean => callOf(context, "event.subscribe") !== undefined

export class SiteV2 extends Site {
  readonly #directory: string
  readonly #translator = new Translator()
  readonly #seen = new BoundedSet<string>(5000)
  /** Requests that were seen: the host gives all loads the same object. */
  readonly #requests = new WeakSet<object>()

  constructor(directory: string, onClose: () => void) {
    super(directory, "unknown", onClose, JudgesV2)
    this.#directory = resolve(directory)
  }

  /** Begin to listen with one more load. Returns what ends it. */
  join(context: unknown): () => Promise<void> {
    const load = { client: clientOf(context) }
    const stopped = new AbortController()
    this.add(load)
    const hook = callOf(context, "session.hook")
    if (hook) hook("context", (event) => this.#request(event)).catch(() => {})
    void this.#listen(context, load, stopped.signal)
    return async () => {
      stopped.abort()
      await this.leave(load).catch(() => {})
    }
  }

  /** A request to the model, before it leaves. An error here would cost the turn. */
  async #request(event: unknown): Promise<void> {
    try {
      const { sessionID, system, agent } = record(event)
      const id = text(sessionID)
      if (!isRecord(event) || this.#requests.has(event)) return
      this.#requests.add(event)
      if (this.tracker.isJudge(id)) (this.judges as JudgesV2).context(event)
      else if (Array.isArray(system)) await this.#give(id, system, text(agent))
    } catch (error) {
      this.log(`hook: ${error}`)
    }
  }

  /** What was learned, as one system text more. The events that tell of the session may come after the hook. */
  async #give(sessionID: string, system: unknown[], agent: string): Promise<void> {
    const end = Date.now() + (this.link.connected && this.link.state.context ? WAIT_MS : 0)
    while (!this.#translator.knows(sessionID) && Date.now() < end) await sleep(STEP_MS)
    if (!this.#isOurs(sessionID)) return
    const texts = system.map((part) => text(record(part)["text"]))
    const before = texts.length
    await this.contexts.system(sessionID, texts, Math.max(0, end - Date.now()), agent)
    system.push(...texts.slice(before).map((added) => ({ type: "text", text: added })))
  }

  /** Read the host's events, one after the other, until the load ends. */
  async #listen(context: unknown, load: Load, signal: AbortSignal): Promise<void> {
    const subscribe = callOf(context, "event.subscribe")
    for (let wait = RETRY_MS.first; !signal.aborted; wait = Math.min(wait * 2, RETRY_MS.most)) {
      try {
        for await (const event of (await subscribe?.({ signal })) ?? []) {
          if (signal.aborted) return
          wait = RETRY_MS.first
          this.hears(load)
          await this.#meet(event, load)
          this.#take(event)
        }
      } catch (error) {
        this.log(`events: ${error}`)
      }
      await sleep(wait, signal)
    }
  }

  /** A session that began before this load: the host says what it is, or is not waited for any longer. */
  async #meet(event: unknown, { client }: Load): Promise<void> {
    const id = sessionOf(event)
    if (!id || this.#translator.knows(id) || NO_QUESTION.has(text(record(event)["type"]))) return
    const got = await Promise.race([client.session.get({ path: { id } }), sleep(LEARN_MS)])
    const learned = this.#translator.learn(id, record(got?.data))
    if (isRecord(got?.data)) this.#tell(id, learned)
  }

  #take(event: unknown): void {
    const id = text(record(event)["id"])
    if (id && !this.#seen.add(id)) return // another load was given it too
    this.#tell(sessionOf(event), this.#translator.translate(event))
  }

  /** The envelope of an event may lack its folder, so the session's own folder says whether it is ours. */
  #tell(sessionID: string, events: OldEvent[]): void {
    if (!this.#isOurs(sessionID)) return
    for (const event of events)
      for (const { kind, data } of this.#facts(event)) {
        this.link.emit(kind, data)
        if (kind === "session.compacted") this.contexts.renew(sessionID)
        if (kind === "chat.message") this.contexts.heard(sessionID)
      }
  }

  #isOurs(sessionID: string): boolean {
    const directory = this.#translator.directory(sessionID)
    return !directory || resolve(directory) === this.#directory
  }

  #facts(event: OldEvent) {
    if (event.type !== "chat.message") return factsOf(event, this.tracker)
    const { sessionID, messageID, parts } = event.properties
    const fact = chatMessage(text(sessionID), text(messageID), "", list(parts), this.tracker)
    return fact ? [fact] : []
  }
}
