import { isSameAddress } from '../../client/same-address.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError, EXIT, unexpectedReply } from '../frame/failure.ts'
import { confirm } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import { readIssuer } from './server-keys.ts'
import type { Target } from './session.ts'

export interface Announced {
  /** What the server says. */
  readonly announced: unknown
  /** What the person has named, or accepted before. */
  readonly given: string | undefined
  /** The command to repeat. */
  readonly command: string
}

/**
 * The issuer to sign for at this address. A relay passes on what another server says, so an issuer that is not the address
 * is asked about, or named by the person (ADR 0049). Throws `CliError`.
 */
export async function settleIssuer(
  context: Context,
  { server }: Target,
  { announced, given, command }: Announced,
): Promise<string> {
  const issuer = readIssuer(announced)
  if (issuer === undefined) throw unexpectedReply()
  if (given === issuer) return issuer
  const isHere = server.socketPath !== undefined || isSameAddress(issuer, server.url)
  if (given === undefined && isHere) return issuer
  const says = `The server at ${server.text} says that it is ${issuer}`
  if (given !== undefined) throw differs(`${says}, not ${given}.`, 'Check both addresses.')
  const hint = `If that is the server you mean, run \`${command} --issuer ${shellWord(issuer)}\`, or use its own address.`
  if (context.stdin.isTTY !== true) throw differs(`${says}.`, hint)
  if (await confirm(context, `${says}. Go on?`)) return issuer
  throw differs(`${says}. Nothing was sent.`, hint)
}

const differs = (message: string, hint: string) =>
  new CliError('issuer_differs', message, { exit: EXIT.refused, hint })
