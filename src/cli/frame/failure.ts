import type { MayflyError, MayflyErrorCode, UnreachableError } from '../../client/errors.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { Interrupted } from './surroundings.ts'

/** The exit codes of every verb except `run`, which exits with the code of its child. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  unauthenticated: 4,
  refused: 5,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failed',
  2: 'wrong usage',
  3: 'cannot reach the server',
  4: 'not authenticated',
  5: 'refused (scope, ttl, enrollment rejected)',
}

/** An expected failure: what happened, and what to do next. Neither text may hold a secret. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: string
  readonly exitCode: ExitCode
  readonly hint: string | undefined

  constructor(
    code: string,
    message: string,
    options: { exit?: ExitCode; hint?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.exitCode = options.exit ?? EXIT.failed
    this.hint = options.hint
  }
}

/** Wrong usage: exit code 2. */
export function usage(message: string, hint = 'Run it with --help for usage.'): CliError {
  return new CliError('usage', message, { exit: EXIT.usage, hint })
}

const CHECK_ADDRESS = 'Check the address in --server, MAYFLY_SERVER or the profile.'

/** What answered is no server of ours, or not as it should be. */
export function unexpectedReply(message = 'What answered does not look like a Mayfly server.'): CliError {
  return new CliError('unexpected_reply', message, { exit: EXIT.unreachable, hint: CHECK_ADDRESS })
}

/** An error as the user sees it: one line, or a JSON object. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly hint: string | undefined
  readonly exitCode: number
}

/** 128 + SIGPIPE: the exit code of a program that a closed pipe ends. */
const EXIT_PIPE = 141

/** Describes any error. An exit code over 128 means a signal ended the program, and there is nothing to print. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CliError) return error
  // Compared by name, so that verbs without a client do not load it.
  if (isNamed<UnreachableError>(error, 'UnreachableError')) return unreachable(error)
  if (isNamed<MayflyError>(error, 'MayflyError')) return refused(error)
  if (error instanceof Interrupted) return silent(error.exitCode)
  if (error instanceof Error && (error as { code?: unknown }).code === 'EPIPE') return silent(EXIT_PIPE)
  return unforeseen(error)
}

const silent = (exitCode: number): Failure => ({
  code: 'interrupted',
  message: '',
  hint: undefined,
  exitCode,
})

function isNamed<T extends Error>(error: unknown, name: string): error is T {
  return error instanceof Error && error.name === name
}

const UNREACHABLE_HINTS: Readonly<Record<string, string>> = {
  refused: 'Start it with `mayfly server`, or give its address with --server or MAYFLY_SERVER.',
  dns: 'Check the name in --server, MAYFLY_SERVER or the profile.',
  timeout: 'Check the network and the address, then try again.',
  reset: 'Check that the address and its scheme (http or https) are right, then try again.',
  socket: 'Check the path, and that you run as the user of the server.',
  tls_untrusted: 'Give the certificate of its authority with --ca FILE or MAYFLY_CA_FILE.',
  tls_expired: 'Renew the certificate of the server, or correct the clock of this machine.',
  tls_hostname: 'Use the name in the certificate.',
  tls_protocol: 'Try http:// instead of https://, or another port.',
  not_http: 'Check the address and its port.',
  network: 'Check the network and the address, then try again.',
}

/** In the name of a server that `UnreachableError` gives. */
export const WITH_PROXY = ' (HTTPS_PROXY is set)'

function unreachable(error: UnreachableError): Failure {
  const { message, reason, server } = error
  return {
    code: `unreachable_${reason}`,
    message,
    hint:
      server.endsWith(WITH_PROXY) && !reason.startsWith('tls_')
        ? 'Check HTTPS_PROXY; NO_PROXY names the hosts to reach without a proxy.'
        : UNREACHABLE_HINTS[reason],
    exitCode: EXIT.unreachable,
  }
}

function refused(error: MayflyError): Failure {
  const { code, message, requestId } = error
  const hint = hintOf(error)
  return {
    code,
    message:
      code === 'internal_error' && requestId !== undefined
        ? `${message} (${requestId})`
        : withoutAdvice(message, hint),
    hint,
    exitCode: exitOf(error),
  }
}

/** What to do says the hint, once, and in words of the command instead of HTTP. */
function withoutAdvice(message: string, hint: string | undefined): string {
  if (hint === undefined) return message
  return message.replace(
    /; (?:try again(?: later)?|wait as long as Retry-After says)\.$|: send "Authorization: Bearer <token>"\.$/,
    '.',
  )
}

const REFUSED = { exit: EXIT.refused }
const LOGIN = {
  exit: EXIT.unauthenticated,
  hint: 'The login is wrong, expired or deleted. Run `mayfly login` or `mayfly enroll`.',
}
const SCOPES = {
  exit: EXIT.refused,
  hint: 'List your scopes with `mayfly status`; request more with `mayfly request SCOPE --reason …`.',
}
const PASSING = { hint: 'Try again. If the problem persists, tell the administrator.' }

/** The exit codes of the errors of a server, and what to do. */
const MEANINGS: Partial<Record<MayflyErrorCode, { exit?: ExitCode; hint?: string }>> = {
  unauthorized: LOGIN,
  invalid_client: LOGIN,
  invalid_token: LOGIN,
  not_allowed: REFUSED,
  // Only an operator's login is asked for it, and only where there is no terminal to log in again at.
  confirmation_required: {
    exit: EXIT.unauthenticated,
    hint: 'It counts as confirmed for 15 minutes after a login: run `mayfly login --browser` or `mayfly login --device`, then the command again.',
  },
  scope_not_allowed: SCOPES,
  insufficient_scope: REFUSED,
  ttl_exceeded: { exit: EXIT.refused, hint: '`mayfly backends` lists the max ttl of each backend.' },
  invalid_scope: SCOPES,
  invalid_target: REFUSED,
  invalid_request: { exit: EXIT.usage },
  unexpected_reply: { exit: EXIT.unreachable, hint: CHECK_ADDRESS },
  backend_not_found: { hint: 'List them with `mayfly backends`.' },
  credential_not_found: { hint: 'List them with `mayfly credentials ls`.' },
  store_unavailable: PASSING,
  audit_unavailable: PASSING,
  backend_unavailable: PASSING,
  backend_timeout: PASSING,
}

function exitOf({ code, status }: MayflyError): ExitCode {
  return MEANINGS[code]?.exit ?? (status === 401 ? EXIT.unauthenticated : EXIT.failed)
}

/** What one scope consists of; a header of the server may hold anything. */
const SCOPE = /^[A-Za-z0-9._/@+:*-]{1,256}$/

function needs(message: string, scope: string | undefined): string | undefined {
  if (scope === undefined || !SCOPE.test(scope)) return undefined
  const told = message.includes(scope) ? '' : `It needs ${scope}. `
  return `${told}Request it with \`mayfly request ${shellWord(scope)}\`.`
}

function hintOf({ code, message, scope, retryAfterSeconds }: MayflyError): string | undefined {
  if (code === 'insufficient_scope') return needs(message, scope)
  if (code !== 'rate_limited') return MEANINGS[code]?.hint
  return retryAfterSeconds === undefined ? 'Try again later.' : `Try again in ${retryAfterSeconds} s.`
}

const SYSTEM_REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'no such file or directory',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of the path is not a directory',
  EDQUOT: 'the quota is used up',
}

/** The code of a system error in words; undefined for any other error. */
export function systemReason(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? SYSTEM_REASONS[code] : undefined
}

/** A system error with its path; the message of any other error, never its stack. */
function unforeseen(error: unknown): Failure {
  const { code, path, syscall } = error as { code?: string; path?: string; syscall?: string }
  const words = systemReason(error)
  if (words !== undefined) {
    const what = path ?? (syscall === 'write' ? 'the output' : syscall)
    return { code: code ?? 'failed', message: `${what}: ${words}.`, hint: undefined, exitCode: EXIT.failed }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { code: 'failed', message: message.split('\n')[0] ?? '', hint: undefined, exitCode: EXIT.failed }
}
