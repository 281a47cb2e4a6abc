import { CliError } from '../frame/failure.ts'

/** An error of the proxy as one of ours. It is known by its name: the proxy imports nothing of the command line. */
export function inWords(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'ProxyFailure') return error
  const { code, hint } = error as Error & { readonly code: string; readonly hint: string }
  return new CliError(code, error.message, { hint, cause: error })
}
