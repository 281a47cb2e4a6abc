import type { TObject } from 'typebox'
import type { Kind } from '../../backends/kind.ts'
import { invalid } from '../../domain/problems.ts'
import type { IssueCommand } from './issue-attempt.ts'

/** The name of an option in the query, and in the `params` of the kinds that know it. */
const OPTIONS = [
  ['repo', 'repos'],
  ['read_only', 'read_only'],
] as const

/** The `params` of a request. Throws `invalid_request`, which names the option of the query that the kind does not know. */
export function paramsOf(
  kind: Pick<Kind, 'type' | 'params'>,
  { params, narrow }: Pick<IssueCommand, 'params' | 'narrow'>,
): Record<string, unknown> {
  if (narrow === undefined) return params ?? {}
  const { properties = {} } = kind.params as Partial<TObject>
  const asked = OPTIONS.filter(([option]) => narrow[option] !== undefined)
  for (const [option, param] of asked) {
    if (!Object.hasOwn(properties, param))
      throw invalid(`"${option}" cannot narrow a credential of kind ${kind.type}; leave it out.`)
  }
  return { ...params, ...Object.fromEntries(asked.map(([option, param]) => [param, narrow[option]])) }
}
