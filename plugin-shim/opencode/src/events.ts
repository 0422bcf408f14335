/**
 * Turns the host's events into the facts that the daemon is told. Only known kinds pass, with few fields and
 * without repeats. It also keeps the tracker up to date; besides that it is pure and synchronous.
 */
import { createHash } from "node:crypto"
import { hostError, isHuman, isOwnCommand, isUndone, orderOf, sessionInfo } from "./project.ts"
import { commandIn, ours } from "./reflect.ts"
import { isStored, STORED_MS } from "./tracker.ts"
import type { Session, Tracker, Wish } from "./tracker.ts"
import { isRecord, JUDGE_TITLE, number, record, text } from "./wire.ts"
import type { Fact, Json } from "./wire.ts"

const ACTIVITY_MS = 5000
const DIGESTED = 2048
const MOST = 16_384
const ABORTED = "MessageAbortedError"
/** What is told of a session while it works on a command of ours. */
const ASIDE = new Set([
  "session.created",
  "session.updated",
  "session.deleted",
  "session.compacted",
  "question.asked",
  "question.replied",
  "question.rejected",
])

/** The facts of one host event, in order; none for most events. */
export function factsOf(event: unknown, tracker: Tracker, now = Date.now()): Fact[] {
  const type = text(record(event)["type"])
  const properties = record(record(event)["properties"])
  const info = record(properties["info"])
  const part = record(properties["part"])
  const sessionID =
    text(properties["sessionID"]) ||
    text(info["sessionID"]) ||
    text(part["sessionID"]) ||
    (type.startsWith("session.") ? text(info["id"]) : "")
  if (!sessionID) return []
  if (type === "session.created" && info["title"] === JUDGE_TITLE) tracker.addJudge(sessionID)
  if (tracker.isJudge(sessionID)) {
    return type === "session.deleted" ? [{ kind: type, data: { sessionID } }] : []
  }
  const before = settled(type, properties, sessionID, tracker)
  const found = [
    ...released(type, properties, sessionID, tracker),
    ...read(type, properties, sessionID, tracker, now),
  ].filter((fact) => fact !== undefined)
  const aside = tracker.peek(sessionID)?.aside === true
  return [...before, ...found.filter((fact) => !aside || ASIDE.has(fact.kind))]
}

function read(
  type: string,
  properties: Json,
  sessionID: string,
  tracker: Tracker,
  now: number,
): (Fact | undefined)[] {
  switch (type) {
    case "message.part.delta": {
      const delta = text(properties["delta"])
      return delta ? [activity(tracker.session(sessionID), sessionID, delta.length, now)] : []
    }
    case "message.part.updated":
      return arrivedPart(record(properties["part"]), sessionID, tracker, now)
    case "message.updated":
      return [arrivedMessage(record(properties["info"]), sessionID, tracker)]
    case "session.created":
    case "session.updated":
      return seen(type, record(properties["info"]), sessionID, tracker)
    case "session.deleted":
      tracker.forget(sessionID)
      return [{ kind: type, data: { sessionID } }]
    case "session.status": {
      const session = tracker.session(sessionID)
      const told = status(text(record(properties["status"])["type"]), sessionID, tracker)
      if (session.status === "idle" || !session.typed) return [told]
      session.held ??= told
      return []
    }
    case "session.idle":
      Object.assign(tracker.session(sessionID), { status: "idle", prompted: 0 })
      return [{ kind: type, data: { sessionID } }]
    case "session.error": {
      const error = hostError(properties["error"])
      if (error.name === ABORTED) tracker.session(sessionID).aborted = true
      else tracker.session(sessionID).failed = true
      return [{ kind: type, data: { sessionID, error } }]
    }
    case "session.compacted":
      return [{ kind: type, data: { sessionID } }]
    case "permission.asked":
    case "question.asked":
      if (type === "question.asked") remember(properties, tracker)
      return [{ kind: type, data: { sessionID, id: text(properties["id"]) } }]
    case "permission.replied":
    case "question.replied":
    case "question.rejected": {
      const requestID = text(properties["requestID"]) || text(properties["permissionID"])
      const known = type === "question.replied" ? tracker.dialogs.get(requestID) : undefined
      tracker.dialogs.delete(requestID)
      const answers = properties["answers"]
      return [{ kind: type, data: { sessionID, requestID, ...(known && { ...known, answers }) } }]
    }
    default:
      return []
  }
}

/** A dialog that opens: if all of its questions are ours, they are told with their answer. */
function remember(properties: Json, tracker: Tracker): void {
  const questions = ours(properties["questions"])
  const call = text(record(properties["tool"])["callID"])
  if (questions) tracker.dialogs.set(text(properties["id"]), { call, questions })
}

/**
 * The hook `chat.message`: a user-role message came in. The host's events about it are then ignored. What a person
 * may have typed to an agent at rest is told when the agent works on it: another plugin's context looks the same, but
 * nobody answers that.
 */
export function chatMessage(
  sessionID: string,
  messageID: string,
  agent: string,
  parts: unknown[],
  tracker: Tracker,
  wish: Wish = {},
): Fact | undefined {
  if (!sessionID || !messageID || tracker.isJudge(sessionID) || !tracker.heard.add(messageID))
    return undefined
  const session = tracker.session(sessionID)
  if (session.incoming?.messageID === messageID) session.incoming = undefined
  const command = commandIn(parts)
  // A command that is typed while the agent works becomes part of that work.
  session.aside = command !== undefined && !tracker.isBusy(sessionID)
  if (command !== undefined) return { kind: "command", data: { sessionID, messageID, arguments: command } }
  const order = parts.map(orderOf).find(Boolean)
  const human = !session.parentID && isHuman(parts)
  if (isOwnCommand(parts)) tracker.commands.add(messageID)
  if (order) session.typed = undefined // the agent works on our words
  if (human && !tracker.isBusy(sessionID)) {
    session.typed = { messageID, agent, wish, until: Date.now() + STORED_MS }
    return undefined
  }
  if (human) session.steered = messageID
  if (human) tracker.steers.add(messageID)
  const said = { human, ...(human && { steers: true }), ...(order && { order }) }
  return { kind: "chat.message", data: { sessionID, messageID, ...(agent && { agent }), ...said } }
}

/** What shows whether the agent works on what was typed. */
const TELLING = new Set(["message.updated", "session.idle", "session.error", "session.deleted"])

/**
 * That the agent began to work, while a message waits for an answer, is told with the event that shows what it works
 * on: a command of the person's own (`!ls`) or another message is none on that message.
 */
function released(type: string, properties: Json, sessionID: string, tracker: Tracker): (Fact | undefined)[] {
  const session = tracker.peek(sessionID)
  if (!session || !TELLING.has(type)) return []
  const { held, typed } = session
  let begins = held !== undefined
  if (type === "message.updated") {
    const info = record(properties["info"])
    if (typed && info["id"] === typed.messageID) {
      isStored(typed)
      return []
    }
    const parent = text(info["parentID"]) // opencode 2 does not say what an answer is to
    begins = info["role"] === "assistant" && (!parent || parent === typed?.messageID)
  }
  session.held = undefined
  return [begins ? begun(sessionID, session) : undefined, held]
}

/** The agent works on what was typed: that is a task. */
function begun(sessionID: string, session: Session): Fact | undefined {
  const { typed } = session
  if (!typed) return undefined
  const { messageID, agent, wish } = typed
  Object.assign(session, { human: messageID, steered: "", typed: undefined, aborted: false, wish })
  return { kind: "chat.message", data: { sessionID, messageID, ...(agent && { agent }), human: true } }
}

/**
 * A user message for which no hook is called (`!shell`, compaction) is complete when something else happens.
 */
function settled(type: string, properties: Json, sessionID: string, tracker: Tracker): Fact[] {
  const session = tracker.peek(sessionID)
  const incoming = session?.incoming
  if (!session || !incoming) return []
  const own =
    text(record(properties["part"])["messageID"]) === incoming.messageID ||
    text(record(properties["info"])["id"]) === incoming.messageID
  if (own || type === "message.part.delta" || type === "session.updated") return []
  session.incoming = undefined
  if (incoming.parts.length === 0) return [] // an old message that was only updated
  const fact = chatMessage(sessionID, incoming.messageID, incoming.agent, incoming.parts, tracker)
  if (session.typed?.messageID === incoming.messageID) isStored(session.typed)
  return fact ? [fact] : []
}

function arrivedMessage(info: Json, sessionID: string, tracker: Tracker): Fact | undefined {
  const messageID = text(info["id"])
  const session = tracker.session(sessionID)
  if (info["role"] === "user") {
    if (!tracker.heard.has(messageID) && session.incoming?.messageID !== messageID)
      session.incoming = { messageID, agent: text(info["agent"]), parts: [] }
    return undefined
  }
  if (info["role"] !== "assistant") return undefined
  // What the person ran is stored like an answer; the agent's last answer stays the turn.
  if (tracker.commands.has(text(info["parentID"]))) return undefined
  if (messageID >= session.turn) {
    // Ids sort by time: a late update of an older message is no new turn.
    session.turn = messageID
    session.summary = info["summary"] === true
  }
  if (isRecord(info["error"])) session.failed = true
  if (!isRecord(info["error"]) || !tracker.errors.add(messageID)) return undefined
  const error = hostError(info["error"])
  if (error.name === ABORTED && messageID === session.turn) session.aborted = true
  return { kind: "message.error", data: { sessionID, messageID, error } }
}

function arrivedPart(part: Json, sessionID: string, tracker: Tracker, now: number): (Fact | undefined)[] {
  const session = tracker.session(sessionID)
  if (session.incoming && text(part["messageID"]) === session.incoming.messageID) {
    const { parts } = session.incoming
    const at = parts.findIndex((other) => record(other)["id"] === part["id"])
    if (at >= 0) parts[at] = part
    else if (parts.length < 100) parts.push(part)
    return []
  }
  if (part["type"] !== "tool") return []
  const state = record(part["state"])
  const { length } = text(state["output"]) || text(record(state["metadata"])["output"])
  const id = text(part["id"])
  const fresh = session.output.part === id ? Math.max(0, length - session.output.length) : length
  session.output = { part: id, length }
  return [activity(session, sessionID, fresh, now), ended(part, sessionID, tracker)]
}

/** A finished tool call, told once, as digests: they show that an agent repeats itself, and no contents. */
function ended(part: Json, sessionID: string, tracker: Tracker): Fact | undefined {
  const state = record(part["state"])
  const failed = state["status"] === "error"
  const exit = number(record(state["metadata"])["exit"]) ?? 0
  if (!(failed || state["status"] === "completed") || !tracker.ended.add(text(part["id"]))) return undefined
  const output = text(state["output"]) || text(state["error"])
  const said = output.length > 2 * DIGESTED ? output.slice(0, DIGESTED) + output.slice(-DIGESTED) : output
  const data = {
    sessionID,
    tool: text(part["tool"]),
    call: digest(JSON.stringify(told(record(state["input"]))).slice(0, MOST)),
    result: digest(said.replace(/\d+/g, "#")),
    failed: failed || exit !== 0, // a shell that failed is a call that completed
  }
  return { kind: "tool", data }
}

/** Of a shell call only its command, because models write another description each time. */
const told = (input: Json): Json => (text(input["command"]) ? { command: input["command"] } : input)

/** A short digest, the same for the same text. No secret depends on it. */
const digest = (value: string): string => createHash("sha1").update(value).digest("hex").slice(0, 16)

function activity(session: Session, sessionID: string, bytes: number, now: number): Fact | undefined {
  const { activity } = session
  activity.bytes += bytes
  if (now - activity.at < ACTIVITY_MS) return undefined
  const data = { sessionID, bytes: activity.bytes }
  session.activity = { at: now, bytes: 0 }
  return { kind: "activity", data }
}

function seen(type: string, raw: Json, sessionID: string, tracker: Tracker): (Fact | undefined)[] {
  const session = tracker.session(sessionID)
  const info = sessionInfo(raw, sessionID)
  const announced = JSON.stringify([info["title"], info["parentID"]])
  session.parentID = text(info["parentID"])
  const undone =
    isUndone(raw) && !session.undone ? stopped(sessionID, session, "messages taken back") : undefined
  session.undone = isUndone(raw)
  if (type === "session.updated" && session.announced === announced) return [undone]
  session.announced = announced
  return [{ kind: type, data: { sessionID, info } }, undone]
}

/** The person stopped a session that does not work: to the daemon that is an abort like any other. */
function stopped(sessionID: string, session: Session, how: string): Fact {
  session.aborted = true
  return { kind: "session.error", data: { sessionID, error: { name: ABORTED, message: how } } }
}

function status(type: string, sessionID: string, tracker: Tracker): Fact | undefined {
  if (type !== "busy" && type !== "idle" && type !== "retry") return undefined
  const session = tracker.session(sessionID)
  session.prompted = 0
  if (session.status === type) {
    // The host says idle twice when it gave up, else only when somebody stops a session that is idle already.
    const again = type === "idle" && !session.aborted && !session.failed
    return again ? stopped(sessionID, session, "stopped while idle") : undefined
  }
  session.status = type
  if (type !== "idle") session.failed = false
  return { kind: "session.status", data: { sessionID, status: { type } } }
}
