/**
 * The opencode plugin of reflectd. It tells the daemon what happens in a session and carries out the daemon's
 * orders. It never prints, never throws into the host, and never makes it wait, except for the gate of `run`
 * mode. Without a daemon opencode behaves as if the plugin were not installed.
 */
import type { PluginModule } from "@opencode-ai/plugin"
import { siteOf } from "./site.ts"
import { SiteV1 } from "./v1.ts"
import { hasEvents, SiteV2 } from "./v2/site.ts"
import { record, text } from "./wire.ts"

const LOADED = "reflectd.loaded"
const env = process.env
const isOff = () => env["REFLECTD_CHILD"] === "1" || env["REFLECTD_DISABLE"] === "1"

/** What opencode 1 calls. */
const server: PluginModule["server"] = async ({ client, directory }) => {
  try {
    if (isOff()) return {}
    return siteOf(`${LOADED}:${directory}`, (onClose) => new SiteV1(directory, onClose)).join(client)
  } catch {
    return {}
  }
}

/**
 * What opencode 2 calls, and waits for: it returns at once, with what opencode calls at the end. opencode 1
 * calls it too, with a context that hears no events; then it does nothing.
 */
const setup = (context: unknown): (() => Promise<void>) | undefined => {
  try {
    const directory = text(record(record(context)["location"])["directory"])
    if (isOff() || !directory || !hasEvents(context)) return undefined
    return siteOf(`${LOADED}.v2:${directory}`, (onClose) => new SiteV2(directory, onClose)).join(context)
  } catch {
    return undefined
  }
}

export default { id: "reflectd", server, setup }
