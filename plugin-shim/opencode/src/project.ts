/**
 * The host's messages as protocol.md projects them: what a judge needs, cut to size, nothing else. Pure.
 * Takes whatever the host returns; what it does not know it leaves out (I36).
 */
import { isRecord, list, number, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

/** How much of a text, a tool's output and a string argument is kept. */
export interface Limits {
  text: { head: number; tail: number }
  output: { head: number; tail: number }
}

const KB = 1024
const MOST = 6 << 20
const LIMITS: Limits = { text: { head: 2 * KB, tail: 14 * KB }, output: { head: KB, tail: 2 * KB } }
const EARLIER = 5
const SLACK = 200

const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff

/** Keep head and tail, cut at line ends where one is near: half a token could slip past the redaction. */
export function cut(value: string, limit: { head: number; tail: number }): { text: string; cut: number } {
  if (value.length <= limit.head + limit.tail) return { text: value, cut: 0 }
  let head = limit.head
  let tail = value.length - limit.tail
  const before = value.lastIndexOf("\n", head)
  if (before > head - SLACK) head = before + 1
  else if (isLowSurrogate(value.charCodeAt(head))) head--
  const after = value.indexOf("\n", tail)
  if (after >= 0 && after < tail + SLACK) tail = after + 1
  else if (isLowSurrogate(value.charCodeAt(tail))) tail++
  const missing = tail - head
  return {
    text: `${value.slice(0, head)}\n[... ${missing} characters cut ...]\n${value.slice(tail)}`,
    cut: missing,
  }
}

/** The same value with every long string in it cut. */
function cutDeep(value: unknown, limits: Limits, depth = 0): unknown {
  if (typeof value === "string") return cut(value, limits.text).text
  if (depth > 6) return null
  if (Array.isArray(value)) return value.slice(0, 200).map((item) => cutDeep(item, limits, depth + 1))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, cutDeep(item, limits, depth + 1)]),
  )
}

/** Without the keys whose value is undefined or empty. */
function some(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""))
}

/** The order a part was sent with, when the part is ours. */
export const orderOf = (part: unknown): string =>
  text(record(record(record(part)["metadata"])["reflectd"])["order"])

const isOurs = (part: unknown) => isRecord(record(record(part)["metadata"])["reflectd"])

const isTyped = (part: unknown) => {
  const { type, synthetic, ignored } = record(part)
  return type === "text" && synthetic !== true && ignored !== true && !isOurs(part)
}

/** Did a person type this user message? A part of ours or a compaction says no for all of it. */
export const isHuman = (parts: unknown[]): boolean =>
  parts.some(isTyped) && !parts.some((part) => isOurs(part) || record(part)["type"] === "compaction")

/** `{name, message}` of a host error. */
export function hostError(value: unknown): { name: string; message: string } {
  const error = record(value)
  const message = text(record(error["data"])["message"]) || text(error["message"])
  return { name: text(error["name"]) || "UnknownError", message: message.slice(0, 2000) }
}

export function sessionInfo(value: unknown, id = ""): Json {
  const info = record(value)
  return {
    id: text(info["id"]) || id,
    ...some({ parentID: text(info["parentID"]) }),
    title: text(info["title"]),
    directory: text(info["directory"]),
  }
}

/** All tokens of an answer, read from and written to a cache too. */
function tokensOf(value: unknown): number {
  const { cache, ...rest } = record(value)
  const { total: _, ...counted } = { ...rest, ...record(cache) }
  return Object.values(counted).reduce<number>((sum, item) => sum + (number(item) ?? 0), 0)
}

function projectInfo(value: unknown): Json {
  const info = record(value)
  const model = record(info["model"])
  const time = record(info["time"])
  return {
    id: text(info["id"]),
    role: text(info["role"]),
    ...some({
      parentID: text(info["parentID"]),
      agent: text(info["agent"]) || text(info["mode"]),
      providerID: text(info["providerID"]) || text(model["providerID"]),
      modelID: text(info["modelID"]) || text(model["modelID"]),
      finish: text(info["finish"]),
      error: isRecord(info["error"]) ? hostError(info["error"]) : undefined,
      summary: info["summary"] === true ? true : undefined,
      cost: number(info["cost"]) || undefined, // 0 is what opencode says of a price it does not know
      tokens: tokensOf(info["tokens"]) || undefined,
    }),
    time: { created: number(time["created"]) ?? 0, ...some({ completed: number(time["completed"]) }) },
  }
}

function projectPart(value: unknown, limits: Limits): Json | undefined {
  const part = record(value)
  const id = text(part["id"])
  switch (part["type"]) {
    case "text": {
      const synthetic = part["synthetic"] === true || part["ignored"] === true ? true : undefined
      const shown = cut(text(part["text"]), limits.text).text
      return { type: "text", id, text: shown, ...some({ synthetic, order: orderOf(part) }) }
    }
    case "tool":
      return {
        type: "tool",
        id,
        callID: text(part["callID"]),
        tool: text(part["tool"]),
        state: projectState(part["state"], limits),
      }
    case "compaction":
      return { type: "compaction", auto: part["auto"] === true }
    case "reasoning":
    case "snapshot":
    case "patch":
    case "step-start":
    case "step-finish":
      return undefined
    default:
      return text(part["type"]) ? { type: "other", of: text(part["type"]) } : undefined
  }
}

function projectState(value: unknown, limits: Limits): Json {
  const state = record(value)
  const metadata = record(state["metadata"])
  const time = record(state["time"])
  const output = cut(text(state["output"]) || text(metadata["output"]), limits.output)
  const error = cut(text(state["error"]), limits.output).text
  return {
    status: text(state["status"]) || "pending",
    input: record(cutDeep(record(state["input"]), limits)),
    ...some({
      output: output.text,
      cut: output.cut || undefined,
      error,
      exit: number(metadata["exit"]),
      start: number(time["start"]),
      end: number(time["end"]),
    }),
  }
}

const infoOf = (message: unknown) => record(record(message)["info"])
const partsOf = (message: unknown) => list(record(message)["parts"])
const isHumanMessage = (message: unknown) => infoOf(message)["role"] === "user" && isHuman(partsOf(message))
const isFinished = (message: unknown) => {
  const info = infoOf(message)
  const { role, finish, summary, error } = info
  return role === "assistant" && finish === "stop" && summary !== true && !isRecord(error)
}

export interface Task {
  /** Index of the task's first human message (steering included); 0 when there is none. */
  start: number
  /** The messages reach back far enough: the finished answer before the task is among them. */
  covered: boolean
  /** Indexes of the human messages before it, at most five, oldest first. */
  earlier: number[]
}

/** Find the current task from the end: its human messages, up to the finished answer before them. */
export function findTask(messages: unknown[]): Task {
  const earlier: number[] = []
  let start = -1
  let covered = false
  for (let at = messages.length - 1; at >= 0 && earlier.length < EARLIER; at--) {
    if (isHumanMessage(messages[at])) {
      if (covered) earlier.unshift(at)
      else start = at
    } else if (start >= 0 && isFinished(messages[at])) covered = true
  }
  return { start: Math.max(0, start), covered, earlier }
}

export const isEnough = (task: Task): boolean => task.covered && task.earlier.length >= EARLIER

/**
 * The task's messages in full; before them the text of up to five earlier human messages and of the answer
 * that ended the previous task, which is where steering stops.
 */
export function projectMessages(messages: unknown[]): Json[] {
  for (let shrink = 1; ; shrink *= 4) {
    const projected = projectAll(messages, scaled(shrink))
    if (shrink >= 64 || Buffer.byteLength(JSON.stringify(projected)) < MOST) return projected
  }
}

function projectAll(messages: unknown[], limits: Limits): Json[] {
  const { start, earlier } = findTask(messages)
  const before = messages.findLastIndex((message, at) => at < start && isFinished(message))
  const context = before >= 0 ? [...earlier.filter((at) => at < before), before] : earlier
  const project = (message: unknown, textOnly: boolean): Json => ({
    info: projectInfo(infoOf(message)),
    parts: partsOf(message)
      .filter((part) => !textOnly || record(part)["type"] === "text")
      .map((part) => projectPart(part, limits))
      .filter((part) => part !== undefined),
  })
  return [
    ...context.map((at) => project(messages[at], true)),
    ...messages.slice(start).map((message) => project(message, false)),
  ]
}

const scaled = (by: number): Limits => ({
  text: { head: LIMITS.text.head / by, tail: LIMITS.text.tail / by },
  output: { head: LIMITS.output.head / by, tail: LIMITS.output.tail / by },
})

/** The agent's own todo list. */
export const projectTodos = (value: unknown): Json[] =>
  list(value).map((todo) => {
    const { id, content, status, priority } = record(todo)
    return some({
      id: text(id),
      content: text(content).slice(0, 1000),
      status: text(status),
      priority: text(priority),
    })
  })
