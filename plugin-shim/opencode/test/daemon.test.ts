import assert from "node:assert/strict"
import { once } from "node:events"
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
  existsSync,
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, test } from "node:test"
import { checkPrivate, findProgram, findSocket, isAbsent, startDaemon, stateDir } from "../src/daemon.ts"
import { lines, post } from "../src/http.ts"
import { modeOf } from "../src/mode.ts"
import { until } from "./daemon-double.ts"

let home: string
beforeEach(() => (home = mkdtempSync(join(tmpdir(), "shim-"))))
afterEach(() => rmSync(home, { recursive: true, force: true }))

test("the state folder: variable, XDG, home", () => {
  assert.equal(stateDir({ HOME: "/h", XDG_STATE_HOME: "/x", REFLECTD_STATE_DIR: "/r" }), "/r")
  assert.equal(stateDir({ HOME: "/h", XDG_STATE_HOME: "/x" }), "/x/reflectd")
  assert.equal(stateDir({ HOME: "/h" }), "/h/.local/state/reflectd")
})

test("the socket: variable, the path the daemon wrote, run-time folder, state folder", () => {
  const env = { HOME: home, REFLECTD_STATE_DIR: home, XDG_RUNTIME_DIR: "/run/user/1" }
  assert.equal(findSocket({ ...env, REFLECTD_SOCKET: "/s" }), "/s")
  assert.equal(findSocket(env), "/run/user/1/reflectd/reflectd.sock")
  assert.equal(findSocket({ ...env, XDG_RUNTIME_DIR: "" }), join(home, "run/reflectd.sock"))
  const other = join(home, "other.sock")
  writeFileSync(join(home, "socket"), other + "\n")
  assert.equal(findSocket(env), "/run/user/1/reflectd/reflectd.sock", "a daemon that is gone left the file")
  writeFileSync(other, "")
  assert.equal(findSocket(env), other)
})

test("a socket that another user owns or may replace is not used", async () => {
  const folder = join(home, "run")
  const socket = join(folder, "s")
  mkdirSync(folder, { mode: 0o700 })
  assert.throws(() => checkPrivate(socket), isAbsent, "there is none")
  let heard = 0
  const server = createServer(() => (heard += 1)).listen(socket)
  await once(server, "listening")
  chmodSync(socket, 0o600)
  checkPrivate(socket)
  for (const [path, usual] of [
    [folder, 0o700],
    [socket, 0o600],
  ] as const) {
    chmodSync(path, usual | 0o022)
    await assert.rejects(post(socket, "/v1/hello", {}, 1000), /others may write/)
    await assert.rejects(
      lines(socket, "/v1/orders", 1000, new AbortController().signal, () => {}),
      /others may write/,
    )
    chmodSync(path, usual)
    if (process.geteuid?.() !== 0) continue
    chownSync(path, 54321, 54321)
    await assert.rejects(post(socket, "/v1/hello", {}, 1000), /another user/)
    chownSync(path, 0, 0)
  }
  assert.equal(heard, 0)
  server.close()
})

const program = (path: string, body: string) => {
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}

test("the program: variable or PATH, and only if it can be run", () => {
  const bin = join(home, "bin")
  mkdirSync(join(bin, "reflectd"), { recursive: true })
  assert.equal(findProgram({ PATH: `${bin}::relative:/none` }), "")
  const real = program(join(home, "reflectd"), "true")
  assert.equal(findProgram({ PATH: `${bin}:${home}` }), real)
  assert.equal(findProgram({ PATH: home, REFLECTD_BIN: "/none" }), "")
  chmodSync(real, 0o644)
  assert.equal(findProgram({ PATH: home }), "")
})

test("the daemon is started at most once a minute, detached, from home, and never when told not to", async () => {
  const note = join(home, "note")
  const env = { HOME: home, REFLECTD_BIN: program(join(home, "r"), `echo "$@ $PWD" >> ${note}`) }
  const later = Date.now() + 3_600_000
  assert.equal(startDaemon({ ...env, REFLECTD_NO_START: "1" }, later), false)
  assert.equal(startDaemon(env, later), true)
  assert.equal(startDaemon(env, later + 59_000), false)
  await until(() => existsSync(note))
  assert.equal(readFileSync(note, "utf8"), `start --from-shim ${home}\n`)
  assert.equal(startDaemon({ ...env, REFLECTD_BIN: "/none" }, later + 61_000), false)
})

test("why the daemon does not start is passed on, in the words that were written down", async () => {
  const state = join(home, "state")
  mkdirSync(state)
  const words: string[] = []
  const start = (body: string, minutes: number) =>
    startDaemon(
      { HOME: home, REFLECTD_STATE_DIR: state, REFLECTD_BIN: program(join(home, "s"), body) },
      Date.now() + 7_200_000 + minutes * 60_000,
      (why) => words.push(why),
    )
  start("exit 1", 0)
  await until(() => words.length === 1)
  start(`echo '"It broke."' > ${state}/start-failed; exit 1`, 2)
  await until(() => words.length === 2)
  const note = join(home, "fine")
  start(`echo done > ${note}`, 4)
  await until(() => existsSync(note))
  assert.match(words[0] ?? "", /reflectd start in a terminal/)
  assert.deepEqual(words.slice(1), ["It broke."])
})

test("which command this process is", () => {
  const mode = (words: string) =>
    modeOf(["bun", "/$bunfs/root/src/index.js", ...words.split(" ").filter(Boolean)])
  assert.deepEqual(
    ["run", "run hi there", "--print-logs run x", "--log-level DEBUG run x"].map(mode),
    Array(4).fill("run"),
  )
  assert.deepEqual(["serve --port 1", "web", "acp", "github run"].map(mode), Array(4).fill("serve"))
  assert.deepEqual(
    ["", ".", "attach http://x", "-m a/b", "run -i", "run --interactive x"].map(mode),
    Array(6).fill("tui"),
  )
  assert.equal(mode("run -- -i"), "run")
})
