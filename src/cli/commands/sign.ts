import { spawn } from 'node:child_process'
import { constants, writeSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import type { Signed } from '../../client/client.ts'
import { CliError, type Failure, failureOf, unexpectedReply } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { oneLine } from '../frame/terminal-text.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { type GpgCall, isKey, readGpgArguments, sigCreatedLine } from '../git/gpg-arguments.ts'
import { runGit } from '../git/run-git.ts'
import { openAgentSession } from '../session/open.ts'

/** The server's limit. */
const MAX_OBJECT_BYTES = 48_000

export const verb = defineVerb({
  description:
    'The program that git runs as gpg.program. Signs the commit or tag on standard input with the key of the agent, on the server, and passes every other call on to gpg.',
  arguments: [{ name: '[arguments...]', description: 'arguments of gpg; git adds them' }],
  passThrough: 'unknown',
  examples: { 'mayfly sign --status-fd=2 -bsau KEYID < commit': 'what git runs after "mayfly git setup"' },
  json: 'not supported: prints the armored signature, and the status in the format of gpg',
  exits: [3, 4, 5],
  run: async (context, _options, argv) => {
    const call = readGpgArguments(argv)
    if (call.kind === 'other') return runGpg(context, argv)
    try {
      await sign(context, call)
    } catch (error) {
      if (call.statusFd === 2) await tellOldGit(context, error)
      throw error
    }
    return undefined
  },
})

async function sign(context: Context, call: GpgCall & { kind: 'sign' }): Promise<void> {
  const object = await readAll(context)
  const { client } = await openAgentSession(context)
  const { body } = await client.call<Signed>({
    method: 'POST',
    path: '/v1/sign',
    body: { data: object.toString('base64'), purpose: purposeOf(object) },
    retry: 'always',
  })
  requireKey(call.keyId, body)
  await context.out.result(body.signature.replaceAll('\r', '').trimEnd())
  report(context, call.statusFd, sigCreatedLine(body.fingerprint, Date.parse(body.created_at)))
}

const purposeOf = (object: Buffer) =>
  object.subarray(0, 7).toString('latin1') === 'object ' ? 'git-tag' : 'git-commit'

/** Raw bytes: a commit may be in any encoding. */
async function readAll({ stdin }: Context): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size <= MAX_OBJECT_BYTES) chunks.push(bytes)
  }
  // Read to the end anyway: git is still writing.
  if (size > MAX_OBJECT_BYTES)
    throw new CliError(
      'payload_too_large',
      `The commit is larger than the ${MAX_OBJECT_BYTES} bytes that the server signs.`,
      {
        hint: 'Shorten its message.',
      },
    )
  return Buffer.concat(chunks)
}

/** Otherwise git would record a signature by a key it did not ask for. */
function requireKey(asked: string | undefined, { fingerprint, key_id, name, email }: Signed): void {
  // git reads it in our status lines, where a line break would begin another.
  if (!/^[0-9A-F]{40}$/i.test(fingerprint)) throw unexpectedReply('The server sent a malformed fingerprint.')
  if (asked === undefined || asked === `${name} <${email}>` || isKey(asked, fingerprint)) return
  throw new CliError('other_key', `git asks for a key other than ${key_id}, the key of this agent.`, {
    hint: 'Run `mayfly git setup` again, or check user.signingkey.',
  })
}

function report({ stderr }: Context, fd: number | undefined, line: string): void {
  if (fd === 2) stderr.write(line)
  else if (fd !== undefined) writeSync(fd, line)
}

/** Verification and the like: gpg inherits the terminal and the files. */
function runGpg({ env, cwd }: Context, argv: readonly string[]): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const program = env['MAYFLY_GPG'] || 'gpg'
  const child = spawn(program, argv, { cwd, env: { ...env }, stdio: 'inherit' })
  child.on('error', (cause) =>
    reject(
      new CliError('no_gpg', `Cannot run ${program}, and only gpg can do this.`, {
        hint: 'Install GnuPG, or name it in MAYFLY_GPG.',
        cause,
      }),
    ),
  )
  child.on('close', (code) => resolve(code ?? 1))
  return promise
}

type Where = Pick<Surroundings, 'env' | 'cwd' | 'signal' | 'platform'>

/**
 * git before 2.41 discards the output of its gpg.program and only says "gpg failed to sign the data". For those versions
 * we write the line to git's own standard error, if the system permits.
 */
async function tellOldGit(where: Where, error: unknown): Promise<void> {
  const failure = failureOf(error)
  if (where.platform !== 'linux' || failure.message === '') return
  try {
    const parent = `/proc/${process.ppid}`
    if ((await readFile(`${parent}/comm`, 'utf8')) !== 'git\n' || !(await isOldGit(where))) return
    // Append to a file, and never block on a pipe without a reader. A socket cannot be opened this way.
    const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants
    const stderr = await open(`${parent}/fd/2`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)
    try {
      const facts = await stderr.stat()
      const room = facts.isFile() ? roomFor(await readFile(`${parent}/fdinfo/2`, 'utf8'), facts.size) : ''
      // One write, so that nothing comes between.
      await stderr.write(room + lineOf(failure))
    } finally {
      await stderr.close()
    }
  } catch {
    // Our own standard error has it in any case.
  }
}

/** More than git writes after its gpg.program has failed, in any language. */
const ROOM_BYTES = 400

/**
 * A file that git did not open for appending, as after `2>file` in a shell: git writes its next lines at its own place in the file,
 * over what we append. Blanks and a line break give it room for them.
 */
function roomFor(fdinfo: string, size: number): string {
  const [, position] = /^pos:\s*(\d+)$/m.exec(fdinfo) ?? []
  const [, flags] = /^flags:\s*([0-7]+)$/m.exec(fdinfo) ?? []
  const isAppending = (Number.parseInt(flags ?? '0', 8) & constants.O_APPEND) !== 0
  const room = Number(position ?? size) + ROOM_BYTES - size
  return isAppending || room <= 0 ? '' : `${' '.repeat(room - 1)}\n`
}

const lineOf = ({ message, hint }: Failure) =>
  `mayfly: ${oneLine([message, hint].filter(Boolean).join(' '))}\n`

async function isOldGit(where: Where): Promise<boolean> {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec((await runGit(where, ['--version'])).stdout) ?? []
  return Number(major) < 2 || (Number(major) === 2 && Number(minor) < 41)
}
