import Type, { type TObject, type TSchema } from 'typebox'
import type { Kind } from '../backends/kind.ts'

/** A kind in a process of its own: a `Kind`, of which what most kinds share may be left out. */
export interface KindDefinition<C extends TObject, P extends TSchema>
  extends Omit<
    Kind<C, P>,
    'params' | 'limits' | 'upstream' | 'scopes' | 'environment' | 'environmentFor' | 'setup'
  > {
  /** Of the plugin. */
  readonly version: string
  readonly params?: P
  readonly limits?: Kind['limits']
  readonly scopes: {
    /**
     * Text and named parts between colons: `read:<database>`. A part `<name>` stands for one or more characters without a colon,
     * `<name...>` at the end for the rest. Several names of one part are between slashes: `<owner>/<repo>`. Mayfly refuses what matches no form.
     */
    readonly forms: Kind['scopes']['forms']
    readonly help: string
    /** What the forms cannot express. */
    valid?(scope: string): boolean
  }
  readonly environment?: Readonly<Record<string, string>>
  /** What the open backend has beside `issue`, `check`, `revoke` and `recover`. */
  readonly offers?: readonly ('list' | 'keepUp' | 'retire' | 'rotation')[]
}

export type DefinedKind = Required<Omit<KindDefinition<TObject, TSchema>, 'complete' | 'recovery'>> &
  Pick<KindDefinition<TObject, TSchema>, 'complete' | 'recovery'>

/** Checks the types of a kind, and fills in what was left out. */
export function defineKind<C extends TObject, P extends TSchema = TObject>(
  definition: KindDefinition<C, P>,
): DefinedKind {
  const given = definition as unknown as KindDefinition<TObject, TSchema>
  return {
    ...given,
    params: given.params ?? Type.Object({}, { additionalProperties: false }),
    limits: given.limits ?? {},
    environment: given.environment ?? {},
    offers: given.offers ?? [],
    serviceAccounts: given.serviceAccounts ?? [],
  }
}
