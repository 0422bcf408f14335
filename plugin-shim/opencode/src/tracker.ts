/**
 * What the shim itself knows about the sessions of this directory, folded from the host's events. Enough to
 * say `stale` in the same tick as a prompt; the daemon keeps the real state.
 */
import { BoundedMap, BoundedSet } from "./bounded.ts"

export type Status = "busy" | "idle" | "retry"

/** A user message that is still arriving part by part, without the `chat.message` hook. */
export interface Incoming {
  messageID: string
  agent: string
  parts: unknown[]
}

export interface Session {
  /** Unknown until the host said something about this session. */
  status?: Status
  /** When we prompted it (epoch ms), until the host says what came of it. */
  prompted: number
  parentID: string
  /** Title and parent as last announced, to drop updates that change neither. */
  announced?: string
  /** The last message that a person typed, and the last assistant message; empty when not seen. */
  human: string
  turn: string
  /** The last assistant message is a compaction summary. */
  summary: boolean
  /** A person stopped the agent since they last typed. */
  aborted: boolean
  activity: { at: number; bytes: number }
  /** How much output of the running tool was counted already. */
  output: { part: string; length: number }
  incoming?: Incoming | undefined
}

/** A prompt that the host accepted but never began must not make a session busy for ever. */
const isPrompted = (session: Session) => Date.now() - session.prompted < 10_000

export class Tracker {
  readonly #sessions = new BoundedMap<string, Session>(1000)
  readonly #judges = new BoundedSet<string>(2000)
  /** User messages announced, and assistant errors announced: each once. */
  readonly heard = new BoundedSet<string>(5000)
  readonly errors = new BoundedSet<string>(2000)
  /** Tool parts that were announced as ended. */
  readonly ended = new BoundedSet<string>(2000)

  peek(id: string): Session | undefined {
    return this.#sessions.get(id)
  }

  session(id: string): Session {
    const session = this.#sessions.get(id) ?? {
      prompted: 0,
      parentID: "",
      human: "",
      turn: "",
      summary: false,
      aborted: false,
      activity: { at: -Infinity, bytes: 0 },
      output: { part: "", length: 0 },
    }
    this.#sessions.set(id, session)
    return session
  }

  forget(id: string): void {
    this.#sessions.delete(id)
  }

  addJudge(id: string): void {
    this.#judges.add(id)
  }

  isJudge(id: string): boolean {
    return this.#judges.has(id)
  }

  isChild(id: string): boolean {
    return Boolean(this.peek(id)?.parentID)
  }

  isBusy(id: string): boolean {
    const session = this.peek(id)
    return session !== undefined && (isPrompted(session) || (session.status ?? "idle") !== "idle")
  }

  /** Why this session must not be prompted for `only` now, or empty. `busy` allows a working session. */
  objection(id: string, only: { task: string; turn: string }, busy: boolean): string {
    const session = this.peek(id)
    if (this.isJudge(id)) return "a judge session"
    if (!session) return ""
    if (session.aborted) return "a person stopped the agent"
    if (session.human && only.task && session.human !== only.task) return "a newer human message"
    if (session.turn && only.turn && session.turn !== only.turn) return "a newer turn"
    if (isPrompted(session) || (!busy && this.isBusy(id))) return "busy"
    return ""
  }
}
