/**
 * The types of design/protocol.md, and the few names that the daemon knows too. Values from outside are
 * `unknown` until one of the small functions below has checked them.
 */
export const API = 1
export const VERSION = "0.1.0"
export const JUDGE_TITLE = "[reflectd judge]"
export const JUDGE_AGENT = "reflectd-judge"

export type Json = Record<string, unknown>

/** `unknown`: opencode 2 does not tell a plugin whether a person sees the session. */
export type Mode = "run" | "serve" | "tui" | "unknown"

export interface Hello {
  host: "opencode"
  mode: Mode
  pid: number
  directory: string
  version?: string
  debug?: true
}

/** What hooks may read without a question to the daemon; every hello brings it. */
export interface HookState {
  gate: boolean
  gate_ms: number
  context: boolean
  /** How many ms a prompt and a tool call wait for lessons; missing while that is off. */
  lessons?: number
  late_lessons?: number
}

export interface Fact {
  kind: string
  data: Json
}

export interface WireEvent extends Fact {
  seq: number
  t: number
}

/** An order; only its form is checked. The code that carries it out reads `data`. */
export interface Order {
  id: string
  kind: string
  session: string
  if?: { task: string; turn: string }
  data: Json
}

export interface Result {
  id: string
  status: "done" | "stale" | "failed"
  data?: Json
  error?: string
}

export interface Model {
  providerID: string
  modelID: string
}

export const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)
export const record = (value: unknown): Json => (isRecord(value) ? value : {})
export const text = (value: unknown): string => (typeof value === "string" ? value : "")
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

export function model(value: unknown): Model | undefined {
  const { providerID, modelID } = record(value)
  return text(providerID) && text(modelID)
    ? { providerID: text(providerID), modelID: text(modelID) }
    : undefined
}

export function order(value: unknown): Order | undefined {
  const raw = record(value)
  if (!text(raw["id"]) || !text(raw["kind"])) return undefined
  const only = raw["if"]
  return {
    id: text(raw["id"]),
    kind: text(raw["kind"]),
    session: text(raw["session"]),
    ...(isRecord(only) && { if: { task: text(only["task"]), turn: text(only["turn"]) } }),
    data: record(raw["data"]),
  }
}

/** One short line for an error of host or daemon, of whatever type: its name, the HTTP status, its words. */
export function reason(error: unknown): string {
  if (error instanceof Error) return error.message.slice(0, 2000) || error.name
  const { name, message, data } = record(error)
  const said = text(message) || text(record(data)["message"])
  const status = number(record(data)["statusCode"])
  const what = status === undefined ? text(name) : `${text(name)} ${status}`.trim()
  return [what, said].filter(Boolean).join(": ").slice(0, 2000) || String(error).slice(0, 2000)
}
