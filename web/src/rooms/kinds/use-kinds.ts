import type { Kind, Plugin } from '../../../../src/client/wire.ts'
import { useList } from '../../api/queries.ts'

export interface KindRow extends Kind {
  /** Undefined: the caller may not see where it comes from. */
  readonly plugin: Plugin | undefined
}

/** All kinds on one page: there are some dozens, and every room that shows one shares them. */
export const useKindList = () => useList('GET /v1/admin/kinds', { limit: 1_000 })

/** One kind; undefined while it is not known. */
export const useKind = (type: string | undefined): Kind | undefined =>
  useKindList().data?.find((one) => one.type === type)

/** What becomes of a credential that is revoked: "A credential of this kind ends at once." */
export const endOf = (revocation: string): string =>
  revocation === 'exact' ? 'ends at once' : 'lasts until its expiry'
