import { CliError } from '../frame/failure.ts'

/** For the catch of a call about one operator. */
export function unknownOperator(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'operator_not_found') throw error
  throw new CliError('operator_not_found', 'No such operator.', {
    hint: 'List them with `mayfly operator ls`.',
    cause: error,
  })
}
