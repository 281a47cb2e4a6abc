import type { TObject, TSchema } from 'typebox'
import { defineKind as fillIn, type KindParts } from '../backends/define-kind.ts'
import type { Kind } from '../backends/kind.ts'

/** A `Kind` for a plugin. Fields that most kinds leave at their default are optional. */
export interface KindDefinition<C extends TObject, P extends TSchema>
  extends Omit<
    KindParts<C, P, void>,
    'upstream' | 'scopes' | 'environment' | 'environmentFor' | 'setup' | 'uses' | 'validate'
  > {
  /** Of the plugin. */
  readonly version: string
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

export type DefinedKind = Kind &
  Required<Pick<KindDefinition<TObject, TSchema>, 'version' | 'environment' | 'offers' | 'serviceAccounts'>>

/** Checks the types of a kind, and fills in what was left out. */
export function defineKind<C extends TObject, P extends TSchema = TObject>(
  definition: KindDefinition<C, P>,
): DefinedKind {
  const given = definition as unknown as KindDefinition<TObject, TSchema>
  const { version, environment = {}, offers = [], serviceAccounts = [], scopes } = given
  const kind = fillIn({ ...given, scopes: { valid: () => true, ...scopes } })
  return { ...kind, version, environment, offers, serviceAccounts }
}
