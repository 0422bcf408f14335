/**
 * What this plugin knows about the sessions of its directory, from the host's events. It is enough to answer
 * `stale` in the same tick as a prompt; the daemon keeps the full state.
 */
import { BoundedMap, BoundedSet } from "./bounded.ts"
import { pause } from "./pump.ts"
import type { Fact, Json } from "./wire.ts"

export type Status = "busy" | "idle" | "retry"

/** A user message that is still arriving part by part, without the `chat.message` hook. */
export interface Incoming {
  messageID: string
  agent: string
  parts: unknown[]
}

/** How a message is to be answered: the strength of thinking, a system text, tools, a form of the answer. */
export interface Wish {
  variant?: string
  system?: string
  tools?: Record<string, boolean>
  format?: Json
}

export interface Session {
  /** Undefined until the host has said something about this session. */
  status?: Status
  /** When we prompted it (epoch ms); 0 once the host has reacted. */
  prompted: number
  parentID: string
  /** Title and parent as last announced, to drop updates that change neither. */
  announced?: string
  /** The message that began the task, and the last assistant message; empty when not seen. */
  human: string
  /** What came in as a person's message while the agent worked, since then: the last one. */
  steered: string
  /** What came in as a person's message while the agent was at rest, until it works on it. */
  typed?: Typed | undefined
  /** The agent began to work while `typed` was there: told when it is clear whether it works on that. */
  held?: Fact | undefined
  turn: string
  /** The last assistant message is a compaction summary. */
  summary: boolean
  /** The person stopped the agent, or took messages back (`/undo`), after they last typed. */
  aborted: boolean
  /** The host gave up since the agent last began to work. */
  failed: boolean
  /** The host keeps messages that the person took back and may still redo. */
  undone: boolean
  /** What the person's last message asked for besides its words; a prompt of ours asks for the same. */
  wish: Wish
  activity: { at: number; bytes: number }
  /** How much output of the running tool was counted already. */
  output: { part: string; length: number }
  incoming?: Incoming | undefined
  /** The agent works on a command of ours, which is no task: little is told of that. */
  aside: boolean
}

/** A message that may begin a task: no program can know before the agent works whether it will be answered. */
export interface Typed {
  messageID: string
  agent: string
  wish: Wish
  /** Until then (epoch ms) it is open what becomes of it. */
  until: number
}

/** A dialog with questions of ours that is open, by the agent's call. */
export interface Dialog {
  call: string
  questions: Json[]
}

/** For 10 s only: a prompt that the host accepted but never began must not keep a session busy for ever. */
const isPrompted = (session: Session) => Date.now() - session.prompted < 10_000

/** So soon after it stored a person's message the host lets the agent work on it. */
const ANSWERED_MS = 2500
/** So long a message may be with other plugins before it is stored. */
export const STORED_MS = 60_000
/** So long a prompt of ours waits to see what becomes of a message. */
const WAITS_MS = 5000

/** The host stored what came in, which it does when every plugin has looked at it. */
export function isStored(typed: Typed): void {
  typed.until = Math.min(typed.until, Date.now() + ANSWERED_MS)
}

export class Tracker {
  readonly #sessions = new BoundedMap<string, Session>(1000)
  readonly #judges = new BoundedSet<string>(2000)
  /** User messages and assistant errors that were announced, so that each is announced once. */
  readonly heard = new BoundedSet<string>(5000)
  readonly errors = new BoundedSet<string>(2000)
  /** User messages that are a shell command of the person's own (`!ls`). */
  readonly commands = new BoundedSet<string>(500)
  /** Dialogs with questions of ours, by the id of the request. */
  readonly dialogs = new BoundedMap<string, Dialog>(100)
  /** User messages that came in while the agent worked. */
  readonly steers = new BoundedSet<string>(2000)
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
      steered: "",
      turn: "",
      summary: false,
      aborted: false,
      failed: false,
      undone: false,
      wish: {},
      activity: { at: -Infinity, bytes: 0 },
      output: { part: "", length: 0 },
      aside: false,
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

  /** Waits until the agent works on what was typed, or until it is clear that it does not. */
  async typed(id: string): Promise<void> {
    const typed = this.peek(id)?.typed
    if (!typed) return
    const end = Date.now() + WAITS_MS
    while (this.peek(id)?.typed === typed && Date.now() < Math.min(typed.until, end)) await pause(20)
  }

  /**
   * Why the session must not be prompted now, or empty. `only`: task and turn that the prompt is for. `busy`:
   * the session may work.
   */
  objection(id: string, only: { task: string; turn: string }, busy: boolean): string {
    const session = this.peek(id)
    if (this.isJudge(id)) return "a judge session"
    if (!session) return ""
    if (session.aborted || session.undone) return "a person stopped the agent or took messages back"
    const { human, steered, typed } = session
    if (typed && Date.now() < typed.until) return "a newer human message"
    if (human && only.task && ![human, steered].includes(only.task)) return "a newer human message"
    if (session.turn && only.turn && session.turn !== only.turn) return "a newer turn"
    if (isPrompted(session) || (!busy && this.isBusy(id))) return "busy"
    return ""
  }
}
