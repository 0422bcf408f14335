/**
 * Events of opencode 2 as those of opencode 1, so that one reader serves both. One event ends each period of
 * work there: `succeeded`, `failed` or `interrupted`. It keeps what an event leaves out and an earlier one said.
 */
import { BoundedMap } from "../bounded.ts"
import { list, record, text } from "../wire.ts"
import type { Json } from "../wire.ts"
import { ABORTED, oldError, toolPart, userParts } from "./messages.ts"

/** An event of opencode 1, or `chat.message` with `{sessionID, messageID, parts}`. */
export interface OldEvent {
  type: string
  properties: Json
}

interface Known {
  parentID: string
  title: string
  directory: string
  /** Undefined until the session was seen at work, or at its end. */
  works?: boolean
}

export const sessionOf = (event: unknown): string => {
  const data = record(record(event)["data"])
  return text(data["sessionID"]) || text(record(data["form"])["sessionID"])
}

export class Translator {
  readonly #sessions = new BoundedMap<string, Known>(1000)
  /** Name and arguments of the calls that run, which their end does not repeat. */
  readonly #calls = new BoundedMap<string, { name: string; input: unknown }>(1000)

  knows(sessionID: string): boolean {
    return this.#sessions.has(sessionID)
  }

  /** The session's folder; empty when nobody said it. */
  directory(sessionID: string): string {
    return this.#sessions.get(sessionID)?.directory ?? ""
  }

  /** What opencode says of a session: `{title, parentID?, location: {directory}}`. */
  learn(sessionID: string, said: Json): OldEvent[] {
    const known = this.#of(sessionID)
    known.parentID = text(said["parentID"]) || known.parentID
    known.title = text(said["title"]) || known.title
    known.directory = text(record(said["location"])["directory"]) || known.directory
    return [old("session.created", sessionID, { info: this.#info(sessionID) })]
  }

  /** None for most events, and for one that says again that the work has ended. */
  translate(event: unknown): OldEvent[] {
    const type = text(record(event)["type"])
    const data = record(record(event)["data"])
    const sessionID = sessionOf(event)
    if (!sessionID) return []
    const found = this.#read(type, data, sessionID)
    const atWork = /^session\.(step\.started|retry|text|reasoning|tool)\b/.test(type)
    if (!atWork || this.#of(sessionID).works !== undefined) return found
    // The plugin was loaded in the middle of the work.
    return [...this.#status("busy", sessionID), ...found]
  }

  #read(type: string, data: Json, sessionID: string): OldEvent[] {
    const one = (name: string, more: Json = {}) => [old(name, sessionID, more)]
    switch (type) {
      case "session.created":
        return this.learn(sessionID, { ...data, ...record(data["info"]) })
      case "session.renamed":
        this.#of(sessionID).title = text(data["title"])
        return one("session.updated", { info: this.#info(sessionID) })
      case "session.deleted":
      case "session.removed":
        this.#sessions.delete(sessionID)
        return one("session.deleted")
      case "session.inbox.enqueued":
        return this.#incoming(data, sessionID)
      case "session.execution.started":
        return this.#status("busy", sessionID)
      case "session.retry.scheduled":
        return this.#status("retry", sessionID)
      case "session.step.started":
        return [...this.#status("busy", sessionID), ...one("message.updated", { info: answer(data) })]
      case "session.step.failed":
        return one("message.updated", { info: { ...answer(data), error: oldError(data["error"]) } })
      case "session.execution.succeeded":
        return this.#ended(sessionID, [])
      case "session.execution.failed":
        return this.#ended(sessionID, one("session.error", { error: oldError(data["error"]) }))
      case "session.execution.interrupted":
        // Also for a permission that was refused and a question that was dismissed. It counts even when the
        // session was at rest.
        this.#of(sessionID).works = true
        return this.#ended(sessionID, one("session.error", { error: { name: ABORTED } }))
      case "session.text.delta":
      case "session.reasoning.delta":
      case "session.tool.input.delta":
        return one("message.part.delta", { delta: data["delta"] })
      case "session.tool.input.started":
        this.#calls.set(text(data["id"]), { name: text(data["name"]), input: {} })
        return []
      case "session.tool.called":
      case "session.tool.progress":
      case "session.tool.success":
      case "session.tool.failed":
        return one("message.part.updated", { part: this.#call(type, data) })
      case "session.compaction.ended":
        return one("session.compacted")
      case "permission.asked":
        return one(type, { id: data["id"] })
      case "permission.replied":
        return one(type, { requestID: data["requestID"] })
      case "form.created":
        return one("question.asked", { id: record(data["form"])["id"] })
      case "form.replied":
        return one("question.replied", { requestID: data["id"] })
      case "form.cancelled":
        return one("question.rejected", { requestID: data["id"] })
      default:
        return []
    }
  }

  #incoming(data: Json, sessionID: string): OldEvent[] {
    const { type, payload } = record(data["item"])
    const messageID = text(data["inboxID"])
    const parts = userParts(type, record(payload), messageID)
    return parts ? [old("chat.message", sessionID, { messageID, parts: list(parts) })] : []
  }

  #status(type: "busy" | "retry", sessionID: string): OldEvent[] {
    this.#of(sessionID).works = true
    return [old("session.status", sessionID, { status: { type } })]
  }

  #ended(sessionID: string, before: OldEvent[]): OldEvent[] {
    const known = this.#of(sessionID)
    if (known.works === false) return []
    known.works = false
    return [...before, old("session.idle", sessionID, {})]
  }

  #call(type: string, data: Json): Json {
    const id = text(data["id"])
    const call = this.#calls.get(id) ?? { name: "", input: {} }
    if (type === "session.tool.called") call.input = data["input"]
    const status = STATUS[type] ?? "running"
    if (status === "running") this.#calls.set(id, call)
    else this.#calls.delete(id)
    const part = toolPart(id, call.name, { ...data, status, input: call.input })
    return { ...part, messageID: data["assistantMessageID"] }
  }

  #of(sessionID: string): Known {
    const known = this.#sessions.get(sessionID) ?? { parentID: "", title: "", directory: "" }
    this.#sessions.set(sessionID, known)
    return known
  }

  #info(sessionID: string): Json {
    const { parentID, title, directory } = this.#of(sessionID)
    return { id: sessionID, parentID, title, directory }
  }
}

const STATUS: Record<string, string> = {
  "session.tool.success": "completed",
  "session.tool.failed": "error",
}

const old = (type: string, sessionID: string, more: Json): OldEvent => ({
  type,
  properties: { sessionID, ...more },
})

const answer = (data: Json): Json => ({ id: data["assistantMessageID"], role: "assistant" })
