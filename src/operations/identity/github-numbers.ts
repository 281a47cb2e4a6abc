import { CliError } from '../../cli/frame/failure.ts'
import { nodeTransport } from '../../cli/frame/transport.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { findProxy } from '../../cli/session/open.ts'
import { isObject } from '../../domain/formats/json.ts'

export interface Numbers {
  readonly repositoryId: string
  readonly ownerId: string
}

/** The API beside an issuer: of github.com, of ghe.com, or of a server of one's own. */
export function apiOf(issuer: string | undefined): string {
  const url = new URL(issuer ?? 'https://token.actions.githubusercontent.com')
  if (url.hostname === 'token.actions.githubusercontent.com') return 'https://api.github.com'
  const [, tenant] = /^token\.actions\.([a-z0-9-]+\.ghe\.com)$/.exec(url.hostname) ?? []
  return tenant === undefined ? `${url.origin}/api/v3` : `https://api.${tenant}`
}

/**
 * Asks the API for the numbers of a repository that everybody may see. Throws `CliError` that says which options have them.
 * @see https://docs.github.com/en/rest/repos/repos#get-a-repository
 */
export async function readNumbers(
  context: Context,
  repository: string,
  issuer: string | undefined,
): Promise<Numbers> {
  const api = apiOf(issuer)
  const [owner = '', name = ''] = repository.split('/')
  const fault = (why: string, cause?: unknown) =>
    new CliError('not_found', `${new URL(api).host} ${why}.`, {
      hint: `Pass --repository-id and --owner-id. With rights to the repository: gh api repos/${repository} --jq '.id, .owner.id'`,
      cause,
    })
  const send = nodeTransport({ proxy: await findProxy(context) })
  const { signal } = context
  let reply: Awaited<ReturnType<typeof send>>
  try {
    reply = await send({
      method: 'GET',
      url: `${api}/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`,
      headers: { accept: 'application/vnd.github+json', 'user-agent': 'mayfly' },
      body: undefined,
      timeoutMs: 10_000,
      signal,
    })
  } catch (error) {
    signal.throwIfAborted()
    throw fault('cannot be reached', error)
  }
  if (reply.status === 404) throw fault('shows no such repository to everybody')
  if (reply.status === 301) throw fault('says that the repository has another name now')
  if (reply.status !== 200) throw fault(`answered with status ${reply.status}`)
  const found = numbersOf(reply.text, repository)
  if (found === undefined) throw fault('answered with something else than this repository')
  return found
}

function numbersOf(text: string, repository: string): Numbers | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const { id, owner, full_name: name } = value
  const ownerId = isObject(owner) ? owner['id'] : undefined
  const isSame = typeof name === 'string' && name.toLowerCase() === repository.toLowerCase()
  return isSame && Number.isSafeInteger(id) && Number.isSafeInteger(ownerId)
    ? { repositoryId: String(id), ownerId: String(ownerId) }
    : undefined
}
