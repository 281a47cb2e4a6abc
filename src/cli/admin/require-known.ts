import type { Client } from '../../client/client.ts'
import { CliError } from '../frame/failure.ts'

interface Names {
  readonly agent?: string | undefined
  readonly backend?: string | undefined
}

/**
 * For a list that a filter has left empty, which must not read as "clean" because of a typo: throws `CliError` if the server
 * has no such agent or backend and no record of one. Silent where the caller may not read what would tell.
 */
export async function requireKnown(client: Client, { agent, backend }: Names): Promise<void> {
  const { agents, backends, tokens, audit } = client.admin
  if (
    agent !== undefined &&
    !(await isKnown([agents.show(agent)], [tokens.list({ agent }), audit({ agent })]))
  )
    throw new CliError('agent_not_found', 'No agent has, or ever had, this name or id.', {
      hint: 'List the agents with `mayfly agent ls`.',
    })
  if (
    backend !== undefined &&
    !(await isKnown([backends.show(backend)], [tokens.list({ backend }), audit({ backend })]))
  )
    throw unknownBackend()
}

/** For an agent, which sees the backends of now only. */
export async function requireBackend(client: Client, backend: string): Promise<void> {
  if (!(await isKnown([client.backend(backend)], []))) throw unknownBackend()
}

/** Whether one of the reads finds something, or may not look. */
async function isKnown(
  reads: readonly Promise<unknown>[],
  records: readonly AsyncIterable<unknown>[],
): Promise<boolean> {
  const found = [...reads.map((read) => read.then(() => true)), ...records.map(hasOne)]
  const answers = await Promise.all(
    found.map((one) => one.catch((error: unknown) => (error as { status?: unknown }).status !== 404)),
  )
  return answers.includes(true)
}

async function hasOne(records: AsyncIterable<unknown>): Promise<boolean> {
  for await (const _ of records) return true
  return false
}

function unknownBackend(): CliError {
  return new CliError('backend_not_found', 'There is no such backend.', {
    hint: 'List them with `mayfly backends`.',
  })
}
