/**
 * The host's messages in the form of protocol.md: only what a judge needs, with long texts cut. Pure. It
 * takes whatever the host returns and leaves out what it does not know (I36).
 */
import { isRecord, list, number, record, text } from "./wire.ts"
import type { Wish } from "./tracker.ts"
import type { Json } from "./wire.ts"

/** How many characters of a text, a string argument and a tool's output are kept. */
export interface Limits {
  text: { head: number; tail: number }
  output: { head: number; tail: number }
}

const KB = 1024
const MOST = 6 << 20
const LIMITS: Limits = { text: { head: 2 * KB, tail: 14 * KB }, output: { head: KB, tail: 2 * KB } }
const EARLIER = 5
const MOST_CITED = 100
const SLACK = 200
const WORD = 4096 // how far the end of a word is looked for, where no line end is near
const BORDER = /[\s"'`,;&<>]/g

const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff

const KEPT_LINES = 24
const KEPT_CHARS = 2 * KB
const LONGEST = 300 // characters of a line that is kept; half a line could hold half a secret
const SCANNED = 5_000 // lines from each end of what is cut
const TELLS = new RegExp(
  [
    "\\b(?:FAIL(?:ED|URES?|S)?|ERRORS?|FATAL|PANIC|panicked|Traceback|AssertionError|REJECTED)\\b",
    "\\b(?:[Ee]rror|fatal|panic|[A-Za-z]+Error|[A-Za-z]*Exception)(?::|\\[)|^\\s*not ok\\b|[✗✘✖✕❌●]",
    "\\b[1-9]\\d* (?:failed|failures?|errors?)\\b|\\bcreate mode \\d|\\berror (?:TS|CS)\\d|\\[(?:remote )?rejected\\]",
  ].join("|"),
)

/**
 * Where the head ends and the tail begins: at a line end if one is near, else where a word ends. A word that is
 * longer than `WORD` is cut.
 */
function edges(value: string, limit: { head: number; tail: number }): { head: number; tail: number } {
  let head = limit.head
  let tail = value.length - limit.tail
  const before = value.lastIndexOf("\n", head)
  if (before >= 0 && before > head - SLACK) head = before + 1
  else {
    const word = [...value.slice(Math.max(0, head - WORD), head).matchAll(BORDER)].pop()
    if (word) head = Math.max(0, head - WORD) + word.index + 1
    else if (isLowSurrogate(value.charCodeAt(head))) head--
  }
  const after = value.indexOf("\n", tail)
  if (after >= 0 && after < tail + SLACK) return { head, tail: after + 1 }
  const word = value.slice(tail, tail + WORD).search(BORDER)
  if (word >= 0) tail += word
  else if (isLowSurrogate(value.charCodeAt(tail))) tail++
  return { head, tail }
}

/** Keep head and tail, cut at a line end or between words: half of a secret could slip past the redaction. */
export function cut(value: string, limit: { head: number; tail: number }): { text: string; cut: number } {
  if (value.length <= limit.head + limit.tail) return { text: value, cut: 0 }
  const { head, tail } = edges(value, limit)
  const missing = tail - head
  return {
    text: `${value.slice(0, head)}\n[... ${missing} characters cut ...]\n${value.slice(tail)}`,
    cut: missing,
  }
}

/** As `cut` for a tool's output; between head and tail stand the lines that tell of failures. */
export function cutOutput(
  value: string,
  limit: { head: number; tail: number },
): { text: string; cut: number } {
  if (value.length <= limit.head + limit.tail) return { text: value, cut: 0 }
  const { head, tail } = edges(value, limit)
  const lines = value.slice(head, tail).split("\n")
  const kept = tellingLines(lines.slice(value[head - 1] === "\n" ? 0 : 1, -1)) // no part of a line
  const left = tail - head - kept.reduce((sum, line) => sum + line.length, 0)
  const mark = `[... ${left} characters cut${kept.length ? ", not these lines" : ""} ...]`
  const end = kept.length ? ["[... end of these lines ...]"] : []
  return { text: [value.slice(0, head), mark, ...kept, ...end, value.slice(tail)].join("\n"), cut: left }
}

/** The lines that tell of failures, or of files that a commit made: the first ones and the last ones. */
function tellingLines(all: string[]): string[] {
  const lines = all.length <= 2 * SCANNED ? all : [...all.slice(0, SCANNED), ...all.slice(-SCANNED)]
  let found = lines.filter((line) => line.length > 0 && line.length <= LONGEST && TELLS.test(line))
  if (found.length > KEPT_LINES) found = [...found.slice(0, KEPT_LINES / 2), ...found.slice(-KEPT_LINES / 2)]
  while (found.reduce((sum, line) => sum + line.length, 0) > KEPT_CHARS) found.splice(found.length >> 1, 1)
  return found
}

/** The value with every long string in it cut. */
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

/** The id of the order that sent this part, if the part is ours. */
export const orderOf = (part: unknown): string =>
  text(record(record(record(part)["metadata"])["reflectd"])["order"])

const isOurs = (part: unknown) => isRecord(record(record(part)["metadata"])["reflectd"])

/** What was given with a person's prompt: a part of their message, which nobody typed. */
export const isGiven = (part: unknown): boolean =>
  record(record(record(part)["metadata"])["reflectd"])["given"] === true

const TYPED = new Set(["text", "file", "agent", "subtask"])

const isTyped = (part: unknown) => {
  const { type, synthetic, ignored } = record(part)
  return TYPED.has(text(type)) && synthetic !== true && ignored !== true && !isOurs(part)
}

/** Whether a person sent this user message: words, files or a command's subtask, and no part of ours. */
export const isHuman = (parts: unknown[]): boolean =>
  parts.some(isTyped) &&
  !parts.some((part) => (isOurs(part) && !isGiven(part)) || record(part)["type"] === "compaction")

/** Whether a person's shell command (`!ls`) made this user message. */
export const isOwnCommand = (parts: unknown[]): boolean =>
  parts.length === 1 && text(record(parts[0])["text"]) === "The following tool was executed by the user"

/**
 * Whether the rules of an agent (the last one that fits counts) or the tools of a message leave it neither
 * edits nor shell commands.
 */
export function mayChangeNothing(rules: unknown, tools: Record<string, boolean> = {}): boolean {
  const denied = (tool: string) => {
    const own = list(rules)
      .map(record)
      .filter((rule) => ["*", tool].includes(text(rule["permission"])))
    const all = own.findLastIndex((rule) => rule["pattern"] === "*")
    const denies = all >= 0 && own.slice(all).every((rule) => rule["action"] === "deny") // no exception after it
    return denies || (tools[tool] ?? tools["*"]) === false
  }
  return denied("edit") && denied("bash")
}

/** `{name, message}` of a host error. */
export function hostError(value: unknown): { name: string; message: string } {
  const error = record(value)
  const message = text(record(error["data"])["message"]) || text(error["message"])
  return { name: text(error["name"]) || "UnknownError", message: message.slice(0, 2000) }
}

/** Whether the person took messages of this session back and has not typed since; `/redo` brings them back. */
export const isUndone = (info: unknown): boolean => isRecord(record(info)["revert"])

/** What a user message asks for besides its words. */
export function wishOf(message: unknown): Wish {
  const { model, system, tools, format } = record(message)
  const variant = text(record(model)["variant"]) || text(record(message)["variant"])
  return {
    ...(variant && { variant }),
    ...(text(system) && { system: text(system) }),
    ...(isRecord(tools) && { tools: tools as Record<string, boolean> }),
    ...(isRecord(format) && { format }),
  }
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

/** All tokens of an answer, with those read from and written to a cache. */
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
      cost: number(info["cost"]) || undefined, // opencode writes 0 for a price that it does not know
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
      const order = orderOf(part)
      const nobody = part["synthetic"] === true || part["ignored"] === true || (isOurs(part) && !order)
      const shown = cut(text(part["text"]), limits.text).text
      return { type: "text", id, text: shown, ...some({ synthetic: nobody || undefined, order }) }
    }
    case "tool":
      return {
        type: "tool",
        id,
        callID: text(part["callID"]),
        tool: text(part["tool"]),
        state: projectState(part["state"], limits),
      }
    case "subtask": // a command that starts a sub-agent: its words are the person's request
      return { type: "text", id, text: cut(text(part["prompt"]), limits.text).text }
    case "file":
      return { type: "file", id, name: text(part["filename"]).slice(0, 200) }
    case "compaction":
      return { type: "compaction", auto: part["auto"] === true }
    case "reasoning": {
      const cited = citedIn(text(part["text"]))
      return cited.length > 0 ? { type: "reasoning", cited } : undefined
    }
    case "snapshot":
    case "patch":
    case "step-start":
    case "step-finish":
      return undefined
    default:
      return text(part["type"]) ? { type: "other", of: text(part["type"]) } : undefined
  }
}

/** The names of points that an agent cites as it thinks; of its thoughts nothing else leaves the host. */
function citedIn(thought: string): string[] {
  const found = thought.matchAll(/\[((?:pat|mis|pref|ctx|oth)-\d+|kpt_\d+)\]/g)
  return [...new Set([...found].map((match) => (match[1] ?? "").slice(0, 40)))].slice(0, MOST_CITED)
}

function projectState(value: unknown, limits: Limits): Json {
  const state = record(value)
  const metadata = record(state["metadata"])
  const time = record(state["time"])
  const output = cutOutput(text(state["output"]) || text(metadata["output"]), limits.output)
  const error = cut(text(state["error"]), limits.output).text
  return {
    status: text(state["status"]) || "pending",
    input: record(cutDeep(record(state["input"]), limits)),
    ...some({
      output: output.text,
      cut: output.cut || undefined,
      error,
      exit: number(metadata["exit"]),
      session: text(metadata["sessionId"]) || text(metadata["sessionID"]),
      start: number(time["start"]),
      end: number(time["end"]),
    }),
  }
}

const infoOf = (message: unknown) => record(record(message)["info"])
const partsOf = (message: unknown) => list(record(message)["parts"])
export const isHumanMessage = (message: unknown) =>
  infoOf(message)["role"] === "user" && isHuman(partsOf(message))
const isFinished = (message: unknown) => {
  const info = infoOf(message)
  const { role, finish, summary, error } = info
  return role === "assistant" && finish === "stop" && summary !== true && !isRecord(error)
}

export interface Task {
  /** Index of the first message that a person typed for this task; 0 when there is none. */
  start: number
  /** The messages reach back far enough: the finished answer before the task is among them. */
  covered: boolean
  /** Indexes of the human messages before it, at most five, oldest first. */
  earlier: number[]
}

/** Whether the agent goes on after this answer. */
const isAtWork = (message: unknown) => {
  const { role, finish, summary, error } = infoOf(message)
  return (
    role === "assistant" && summary !== true && !isRecord(error) && ["", "tool-calls"].includes(text(finish))
  )
}

/** For each message, whether an answer follows before a prompt of ours does. */
function answeredOf(messages: unknown[]): boolean[] {
  let follows = false
  return messages
    .toReversed()
    .map((message) => {
      const answered = follows
      const ordered = partsOf(message).some(orderOf)
      if (infoOf(message)["role"] === "assistant" || ordered) follows = !ordered
      return answered
    })
    .toReversed()
}

/**
 * Find the current task: it begins with the last message that a person typed after a finished answer and that was
 * answered (`Transcript.requests` of the daemon). `steers`: whether the agent was at work when a message came.
 */
export function findTask(messages: unknown[], steers: (id: string) => boolean = () => false): Task {
  const answered = answeredOf(messages)
  const humans: number[] = []
  let start = -1
  let covered = false
  let ended = false
  let rest = true
  messages.forEach((message, at) => {
    if (isHumanMessage(message)) {
      humans.push(at)
      if (start >= 0 && !(rest && answered[at] && !steers(text(infoOf(message)["id"])))) return
      start = at
      covered = ended
      rest = false
    } else if (isFinished(message)) ended = rest = true
    else if (isAtWork(message)) rest = false
  })
  const earlier = covered ? humans.filter((at) => at < start).slice(-EARLIER) : []
  return { start: Math.max(0, start), covered, earlier }
}

export const isEnough = (task: Task): boolean => task.covered && task.earlier.length >= EARLIER

/**
 * The task's messages in full. Before them, only as text, up to five earlier human messages and the answer
 * that ended the previous task.
 */
export function projectMessages(messages: unknown[], steers: (id: string) => boolean = () => false): Json[] {
  for (let shrink = 1; ; shrink *= 4) {
    const projected = projectAll(messages, scaled(shrink), steers)
    if (shrink >= 64 || Buffer.byteLength(JSON.stringify(projected)) < MOST) return projected
  }
}

function projectAll(messages: unknown[], limits: Limits, steers: (id: string) => boolean): Json[] {
  const { start, earlier } = findTask(messages, steers)
  const before = messages.findLastIndex((message, at) => at < start && isFinished(message))
  const context = before >= 0 ? [...earlier.filter((at) => at < before), before] : earlier
  return [
    ...context.map((at) => project(messages[at], limits, true)),
    ...messages.slice(start).map((message) => {
      const { info, parts } = project(message, limits)
      return {
        info: { ...record(info), ...(steers(text(infoOf(message)["id"])) && { steers: true }) },
        parts,
      }
    }),
  ]
}

const project = (message: unknown, limits: Limits, textOnly = false): Json => ({
  info: projectInfo(infoOf(message)),
  parts: partsOf(message)
    .filter((part) => !textOnly || record(part)["type"] === "text")
    .map((part) => projectPart(part, limits))
    .filter((part) => part !== undefined),
})

/** All messages in full. Of more than fits, texts are cut shorter first, and then the oldest messages go. */
export function projectWhole(messages: unknown[]): Json[] {
  let rest = messages
  for (let shrink = 1; ; shrink *= 4) {
    const limits = scaled(Math.min(shrink, 64))
    const projected = rest.map((message) => project(message, limits))
    if (rest.length < 2 || Buffer.byteLength(JSON.stringify(projected)) < MOST) return projected
    if (shrink >= 64) rest = rest.slice(rest.length >> 1)
  }
}

const scaled = (by: number): Limits => ({
  text: { head: LIMITS.text.head / by, tail: LIMITS.text.tail / by },
  output: { head: LIMITS.output.head / by, tail: LIMITS.output.tail / by },
})

const REFUSED = "with the following feedback: "
const SAID: Limits = { text: { head: 4 * KB, tail: 6 * KB }, output: { head: KB, tail: KB } }

const isRefusal = (part: unknown): boolean =>
  record(part)["type"] === "tool" && text(record(record(part)["state"])["error"]).includes(REFUSED)

/** Whether the person refused a call of this answer with words. */
export const isRefused = (message: unknown): boolean => partsOf(message).some(isRefusal)

/** A message as somebody said it: its words, and the calls that were refused with words. */
export const projectSaid = (message: unknown): Json => ({
  info: projectInfo(infoOf(message)),
  parts: partsOf(message)
    .filter((part) => record(part)["type"] === "text" || isRefusal(part))
    .map((part) => projectPart(part, SAID)),
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
