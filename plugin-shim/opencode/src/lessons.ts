/**
 * Lessons from tasks that ended badly, given by the daemon: with a person's prompt, and, when its model answered later,
 * behind the result of a tool call. The daemon decides what is given; here it is only put in its place. A prompt and a
 * tool call wait for it as long as the daemon's hello said (60 and 20 ms, if nobody set anything else); the daemon is
 * asked also when it hears of the session later than that. An answer that comes later still stands behind the next
 * result: the daemon has recorded it as given. What a prompt is given is stored as `ignored`, which no
 * request has, and only the agent's requests are shown it: the title and the summary of a compaction have no use for it.
 */
import { BoundedMap, BoundedSet } from "./bounded.ts"
import type { Link } from "./link.ts"
import { pause } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { isGiven } from "./project.ts"
import { isRecord, list, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

const LONGEST = 4000 // characters of one text; a longer one is none of ours
const TYPED = 8000 // of what was typed
/** How long the request for the title, which begins with the first of the agent, is let go first. */
const TITLE_MS = 50
const CATCH_UP_MS = 5000 // for the daemon to hear of the session
const ANSWER_MS = 5000 // of a busy machine
/** What the daemon gives a session, and whether it is being asked. */
interface Slot {
  text: string
  asking?: Promise<void> | undefined
}

const PART = /^prt_[0-9a-f]{12}/

export class Lessons {
  readonly #link: Pick<Link, "ask" | "connected" | "flushed" | "state">
  readonly #tracker: Pick<Tracker, "isChild" | "isJudge">
  readonly #prompted = new BoundedSet<string>(1000)
  readonly #called = new BoundedSet<string>(2000)
  /** Of the newest prompt of each session. */
  readonly #slots = new BoundedMap<string, Slot>(1000)
  /** Sessions that were shown a lesson. */
  readonly #shown = new BoundedSet<string>(1000)
  /** Sessions whose next request is that of a compaction. */
  readonly #compacting = new BoundedMap<string, true>(1000)

  constructor(
    link: Pick<Link, "ask" | "connected" | "flushed" | "state">,
    tracker: Pick<Tracker, "isChild" | "isJudge">,
  ) {
    this.#link = link
    this.#tracker = tracker
  }

  /** A person's message: what is given is one more part of it, which nobody typed. */
  async prompted(sessionID: string, messageID: string, parts: unknown[], model = ""): Promise<void> {
    const ms = this.#link.state.lessons ?? 0
    if (!ms || !this.#isAgent(sessionID) || !this.#prompted.add(messageID)) return
    const slot: Slot = { text: "" } // in place of that of an earlier prompt
    this.#slots.set(sessionID, slot)
    const asked = { sessionID, messageID, text: typedIn(parts), ...(model && { model }) }
    const given = await this.#given(slot, ms, () => this.#chosen(asked))
    if (!given) return
    const ours = { text: given, synthetic: true, ignored: true, metadata: { reflectd: { given: true } } }
    parts.push({ id: idAfter(parts), sessionID, messageID, type: "text", ...ours })
  }

  /** The session is about to be compacted: its messages are the next that become a request. */
  compacting(sessionID: string): void {
    this.#compacting.set(sessionID, true)
  }

  /**
   * The messages of one request, of the agent or of a compaction. opencode begins the request for the title at the
   * same time and takes its messages from the same list: it is let go first, and messages are replaced, not changed.
   */
  async requested(messages: unknown[]): Promise<void> {
    const sessionID = text(record(record(messages[0])["info"])["sessionID"])
    if (this.#compacting.delete(sessionID)) return
    const given = messages.some((message) => list(record(message)["parts"]).some(isGiven))
    if (!given) return
    await pause(this.#shown.add(sessionID) ? TITLE_MS : 0)
    messages.forEach((message, at) => {
      const parts = list(record(message)["parts"])
      if (!parts.some(isGiven)) return
      const shown = parts.map((part) => (isGiven(part) ? { ...record(part), ignored: false } : part))
      messages[at] = { ...record(message), parts: shown }
    })
  }

  /** A tool call has ended: what is given stands behind its result. */
  async acted(input: Json, output: unknown): Promise<void> {
    const sessionID = text(input["sessionID"])
    const callID = text(input["callID"])
    const ms = this.#link.state.late_lessons ?? 0
    if (!ms || !this.#isAgent(sessionID) || !isRecord(output)) return
    if (typeof output["output"] !== "string" || !this.#called.add(callID)) return
    const slot = this.#slots.get(sessionID) ?? { text: "" }
    this.#slots.set(sessionID, slot)
    const given = await this.#given(slot, ms, () => this.#ask("late_lessons", { sessionID, callID }))
    if (given) output["output"] += `\n\n${given}` // recorded, and taken out again before anybody judges
  }

  #isAgent(sessionID: string): boolean {
    return (
      this.#link.connected &&
      !!sessionID &&
      !this.#tracker.isJudge(sessionID) &&
      !this.#tracker.isChild(sessionID)
    )
  }

  /** What the daemon gives, if it is there within ``ms``. What comes later waits for who asks next. */
  async #given(slot: Slot, ms: number, ask: () => Promise<string>): Promise<string> {
    if (!slot.text) {
      slot.asking ??= ask().then((text) => {
        slot.text = text
        slot.asking = undefined
      })
      await Promise.race([slot.asking, pause(ms)])
    }
    const given = slot.text
    slot.text = ""
    return given
  }

  /** What a prompt is given. The daemon must know the session before it is asked about it. */
  async #chosen(asked: Json): Promise<string> {
    return (await this.#link.flushed(CATCH_UP_MS)) ? this.#ask("lessons", asked) : ""
  }

  async #ask(what: string, data: Json): Promise<string> {
    const given = text((await this.#link.ask(what, data, ANSWER_MS))?.["text"])
    return given.length <= LONGEST ? given : ""
  }
}

/** What was typed, of all parts of a message. */
const typedIn = (parts: unknown[]): string =>
  parts
    .map(record)
    .filter((part) => part["type"] === "text" && part["synthetic"] !== true && part["ignored"] !== true)
    .map((part) => text(part["text"]))
    .join("\n")
    .slice(0, TYPED)

/** An id that opencode sorts behind those of the parts that are there. */
function idAfter(parts: unknown[]): string {
  const last =
    list(parts)
      .map((part) => text(record(part)["id"]))
      .sort()
      .pop() ?? ""
  const now = (BigInt(Date.now()) * 0x1000n).toString(16).padStart(12, "0").slice(-12)
  return `${PART.exec(last)?.[0] ?? `prt_${now}`}${"z".repeat(14)}`
}
