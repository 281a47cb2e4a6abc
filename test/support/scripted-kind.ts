import { Type } from 'typebox'
import type { Handle, Issued, IssueRequest, Kind, ListedPage } from '../../src/backends/kind.ts'
import { isScope } from '../../src/domain/scope.ts'

const empty = Type.Object({}, { additionalProperties: false })

/** What the upstream of a `scripted` backend does. */
export interface Script {
  issue?(request: IssueRequest<unknown>, signal: AbortSignal): Promise<Partial<Issued> | undefined>
  revoke?(handle: Handle, signal: AbortSignal): Promise<unknown>
  list?(after: string | undefined): Promise<ListedPage>
}

/** A kind with an exact upstream that does what the test says. Its handles name the credential: `{ id }`. */
export function scriptedKind({ issue, revoke, list }: Script): Kind<typeof empty, typeof empty> {
  return {
    type: 'scripted',
    title: 'Scripted',
    config: empty,
    params: empty,
    limits: {},
    revocation: 'exact',
    upstream: true,
    scopes: { valid: isScope, forms: [], help: 'Any scope.' },
    open: async () => ({
      check: async () => [],
      issue: async (request, signal) => ({
        secret: 's',
        handle: { id: request.credentialId },
        ...(await issue?.(request, signal)),
      }),
      revoke: async (handle, signal) => void (await revoke?.(handle, signal)),
      recover: (id) => ({ id }),
      ...(list === undefined ? {} : { list }),
      async [Symbol.asyncDispose]() {},
    }),
  }
}
