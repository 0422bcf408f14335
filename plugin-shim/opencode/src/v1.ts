/**
 * The hooks of opencode 1. None of them throws. Only the gate of `run` makes the host wait, and for a moment the
 * first request of a session.
 */
import type { Hooks } from "@opencode-ai/plugin"
import { BoundedSet } from "./bounded.ts"
import { chatMessage, factsOf } from "./events.ts"
import { Gate } from "./gate.ts"
import { AGENT } from "./judge.ts"
import { Lessons } from "./lessons.ts"
import { modeOf } from "./mode.ts"
import { wishOf } from "./project.ts"
import { COMMAND, markCommand, NAME } from "./reflect.ts"
import { Site } from "./site.ts"
import type { Client } from "./site.ts"
import { isRecord, JUDGE_AGENT, list, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

const mode = modeOf(process.argv)

export class SiteV1 extends Site {
  readonly #gate = new Gate(this.link, this.orders, this.tracker)
  readonly #lessons = new Lessons(this.link, this.tracker)
  /** Ids of the host's events. */
  readonly #events = new BoundedSet<string>(5000)
  /** What events without an id and texts carried: the host gives all loads the same objects. */
  readonly #carried = new WeakSet<object>()

  constructor(directory: string, onClose: () => void) {
    super(directory, mode, () => {
      onClose()
      this.#gate.close()
    })
  }

  /** The hooks of one more load. */
  join(client: Client): Hooks {
    const load = { client }
    this.add(load)
    return {
      config: this.#safe((config) => {
        config.agent = { ...config.agent, [JUDGE_AGENT]: AGENT as NonNullable<typeof config.agent>[string] }
        config.command = { [NAME]: COMMAND, ...config.command }
      }),
      event: this.#safe(({ event }) => {
        this.hears(load)
        const { id, properties } = record(event)
        if (!(text(id) ? this.#events.add(text(id)) : this.#isNew(properties))) return
        for (const { kind, data } of factsOf(event, this.tracker)) {
          this.link.emit(kind, data)
          if (kind === "session.compacted") this.contexts.renew(text(data["sessionID"]))
        }
        this.#gate.see(event)
      }),
      "chat.message": this.#safe(async (input, { message, parts }) => {
        this.hears(load)
        await this.#heard(record(input), record(message), list(parts))
      }),
      "tool.execute.after": this.#safe(async (input, output) => {
        await this.#lessons.acted(record(input), output)
      }),
      "command.execute.before": this.#safe(({ command, arguments: typed }, { parts }) => {
        markCommand(text(command), text(typed), parts)
      }),
      "shell.env": this.#safe(({ sessionID }, { env }) => {
        if (text(sessionID)) env["REFLECTD_SESSION"] = text(sessionID)
      }),
      "experimental.chat.system.transform": this.#safe(async (input, { system }) => {
        const only = this.judges.system(text(input.sessionID))
        if (only !== undefined) system.splice(0, system.length, only)
        else await this.contexts.system(text(input.sessionID), system)
      }),
      "experimental.chat.messages.transform": this.#safe(async (_, { messages }) => {
        await this.#lessons.requested(messages)
      }),
      "experimental.session.compacting": this.#safe((input) => {
        this.#lessons.compacting(text(input.sessionID))
      }),
      ...(mode === "run" && {
        "tool.execute.before": this.#safe((input) => this.#gate.called(text(record(input)["sessionID"]))),
        "experimental.text.complete": this.#safe(async (input, output) => {
          if (!this.#isNew(output)) return
          await this.#gate.textComplete(text(input.sessionID), text(input.messageID), text(output.text))
        }),
      }),
      dispose: this.#safe(() => this.leave(load)),
    }
  }

  async #heard(input: Json, message: Json, parts: unknown[]): Promise<void> {
    const sessionID = text(input["sessionID"])
    const messageID = text(message["id"]) || text(input["messageID"])
    const agent = text(message["agent"]) || text(input["agent"])
    const wish = wishOf({ variant: input["variant"], ...message })
    const fact = chatMessage(sessionID, messageID, agent, parts, this.tracker, wish)
    const typed = this.tracker.peek(sessionID)?.typed?.messageID === messageID
    if (!fact && !typed) return
    if (typed || fact?.data["human"]) this.#gate.heard(sessionID)
    if (fact) this.link.emit(fact.kind, fact.data)
    this.contexts.heard(sessionID)
    if (typed) await this.#lessons.prompted(sessionID, messageID, parts, modelOf(message, input))
  }

  #isNew(carried: unknown): boolean {
    if (!isRecord(carried)) return true
    const fresh = !this.#carried.has(carried)
    this.#carried.add(carried)
    return fresh
  }

  /** A hook that can't fail, because an error in a hook would cost the person a turn. */
  #safe<A extends unknown[]>(hook: (...args: A) => unknown) {
    return async (...args: A): Promise<void> => {
      try {
        await hook(...args)
      } catch (error) {
        this.log(`hook: ${error}`)
      }
    }
  }
}

/** The model that answers a message, as `provider/model`. */
function modelOf(message: Json, input: Json): string {
  const { providerID, modelID } = record(message["model"] ?? input["model"])
  return text(providerID) && text(modelID) ? `${text(providerID)}/${text(modelID)}` : ""
}
