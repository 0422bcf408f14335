/**
 * Finds the daemon's socket, and starts the daemon when none runs. Never waits and never prints. The socket
 * is looked up again at every reconnect, because a restarted daemon may listen elsewhere.
 */
import { spawn } from "node:child_process"
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, dirname, isAbsolute, join } from "node:path"
import { record, text } from "./wire.ts"

type Env = Record<string, string | undefined>

const AGAIN_MS = 60_000
const LAST_START = Symbol.for("reflectd.start")
const ABSENT = new Set(["ENOENT", "ECONNREFUSED", "FailedToOpenSocket", "ConnectionRefused"])

const home = (env: Env) => env["HOME"] || homedir()

export function stateDir(env: Env = process.env): string {
  return (
    env["REFLECTD_STATE_DIR"] || join(env["XDG_STATE_HOME"] || join(home(env), ".local", "state"), "reflectd")
  )
}

/** The socket, as protocol.md says: the variable, else the path that the daemon wrote, else the default. */
export function findSocket(env: Env = process.env): string {
  if (env["REFLECTD_SOCKET"]) return env["REFLECTD_SOCKET"]
  const state = stateDir(env)
  const written = read(join(state, "socket"))
  if (isAbsolute(written) && existsSync(written)) return written
  return env["XDG_RUNTIME_DIR"]
    ? join(env["XDG_RUNTIME_DIR"], "reflectd", "reflectd.sock")
    : join(state, "run", "reflectd.sock")
}

/**
 * Throws unless the socket and its folder are this user's and nobody else may write to them: another user's
 * program must get no word of the session, and no order of his may be carried out.
 */
export function checkPrivate(socketPath: string): void {
  for (const path of [dirname(socketPath), socketPath]) {
    const found = statSync(path)
    if (found.uid !== process.geteuid?.()) throw new Error(`${path} belongs to another user; not used`)
    if (found.mode & 0o022) throw new Error(`others may write to ${path}; run: chmod go-w ${path}`)
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return ""
  }
}

/** Whether connecting failed because no daemon listens, and not because one is slow or refuses. */
export const isAbsent = (error: unknown): boolean => ABSENT.has(text(record(error)["code"]))

/** The path of the daemon's program, found without a shell; empty when it is not installed. */
export function findProgram(env: Env = process.env): string {
  if (env["REFLECTD_BIN"]) return isProgram(env["REFLECTD_BIN"]) ? env["REFLECTD_BIN"] : ""
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, "reflectd")
    if (isAbsolute(path) && isProgram(path)) return path
  }
  return ""
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Why the daemon did not start, in the words that `reflectd start` wrote down for the person. */
function startFailure(env: Env): string {
  const unknown = "reflectd does not start: run reflectd start in a terminal to see why"
  try {
    return text(JSON.parse(read(join(stateDir(env), "start-failed")))) || unknown
  } catch {
    return unknown
  }
}

/**
 * Start the daemon in the background: at most once a minute in this process, and only if it is installed.
 * `onFailed` is told why it did not start.
 */
export function startDaemon(
  env: Env = process.env,
  now = Date.now(),
  onFailed: (why: string) => void = () => {},
): boolean {
  const shared = globalThis as { [LAST_START]?: number }
  if (env["REFLECTD_NO_START"] === "1" || now - (shared[LAST_START] ?? -AGAIN_MS) < AGAIN_MS) return false
  shared[LAST_START] = now
  const program = findProgram(env)
  if (!program) return false
  try {
    const child = spawn(program, ["start", "--from-shim"], {
      cwd: home(env),
      detached: true,
      env: env as NodeJS.ProcessEnv,
      stdio: "ignore",
    })
    child.on("error", () => {})
    child.on("exit", (code) => code && onFailed(startFailure(env)))
    child.unref()
    return true
  } catch {
    return false
  }
}
