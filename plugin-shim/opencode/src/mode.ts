/**
 * Which command of opencode this process runs: `run` exits at idle, nobody watches `serve`, else it is a TUI.
 */
import type { Mode } from "./wire.ts"

const HEADLESS = new Set(["serve", "web", "acp", "headless", "github"])
const WITH_VALUE = new Set([
  "--log-level",
  "--port",
  "--hostname",
  "--mdns-domain",
  "--cors",
  "--dir",
  "--cwd",
])
const INTERACTIVE = new Set(["-i", "--interactive"])

export function modeOf(argv: readonly string[]): Mode {
  const given = argv.slice(2)
  const at = given.findIndex((word, i) => !word.startsWith("-") && !WITH_VALUE.has(given[i - 1] ?? ""))
  const command = given[at] ?? ""
  if (HEADLESS.has(command)) return "serve"
  if (command !== "run") return "tui"
  const end = given.indexOf("--")
  const options = given.slice(at + 1, end < 0 ? undefined : end)
  return options.some((word) => INTERACTIVE.has(word)) ? "tui" : "run"
}
