/**
 * The calls of opencode 2 that we use, each of which a version may lack. The types are ours: they say what we
 * pass and what we read, and nothing of the rest.
 */
import type { Json } from "../wire.ts"

export interface ModelRef {
  providerID: string
  id: string
}

interface InSession {
  sessionID: string
}

/** Every call takes one object and gives the bare data; an error has a `_tag`. */
export interface Calls {
  "event.subscribe": (input: { signal: AbortSignal }) => AsyncIterable<unknown>
  "session.get": (input: InSession) => Promise<unknown>
  "session.context": (input: InSession) => Promise<unknown>
  "session.synthetic": (
    input: InSession & { id: string; text: string; description: string; metadata: Json; delivery: "steer" },
  ) => Promise<unknown>
  "session.create": (input: { title: string; permissions: Json[] }) => Promise<unknown>
  "session.switchModel": (input: InSession & { model: ModelRef }) => Promise<unknown>
  "session.prompt": (input: InSession & { prompt: { text: string } }) => Promise<unknown>
  "session.wait": (input: InSession) => Promise<unknown>
  "session.interrupt": (input: InSession) => Promise<unknown>
  "session.remove": (input: InSession) => Promise<unknown>
  "session.hook": (name: "context", hook: (event: unknown) => void | Promise<void>) => unknown
  "generate.text": (input: { prompt: string; model?: ModelRef }) => Promise<unknown>
  "model.list": (input: Json) => Promise<unknown>
  "agent.list": (input: Json) => Promise<unknown>
}

type Method = (...args: unknown[]) => unknown

const inside = (value: unknown, name: string): unknown =>
  value === null || value === undefined ? undefined : (value as Record<string, unknown>)[name]

export type Call<K extends keyof Calls> = (
  ...args: Parameters<Calls[K]>
) => Promise<Awaited<ReturnType<Calls[K]>>>

/** The call, made in the same tick, with every error as a rejection; undefined when this version lacks it. */
export function callOf<K extends keyof Calls>(context: unknown, name: K): Call<K> | undefined {
  const [domain = "", method = ""] = name.split(".")
  try {
    const owner = inside(context, domain)
    if (typeof inside(owner, method) !== "function") return undefined
    const call = async (...args: unknown[]): Promise<unknown> =>
      (owner as Record<string, Method>)[method]?.(...args)
    return call as Call<K>
  } catch {
    return undefined
  }
}
