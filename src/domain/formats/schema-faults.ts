/** An error of TypeBox or Ajv, which describe errors alike. */
interface SchemaError {
  readonly keyword: string
  readonly instancePath: string
  readonly schemaPath: string
  readonly params: object
  readonly message?: string | undefined
}

interface Facts {
  readonly allowedValue?: unknown
  readonly allowedValues?: readonly unknown[]
  readonly additionalProperties?: readonly string[]
  readonly requiredProperties?: readonly string[]
}

export type SchemaFault = ReturnType<typeof faultsOf>[number]

/** Each fault once: TypeBox also reports the branches of a union, and the `false` of an unknown field. */
export function faultsOf(errors: readonly SchemaError[]) {
  const branchesOf = ({ schemaPath }: SchemaError) =>
    errors.filter((error) => error.schemaPath.startsWith(`${schemaPath}/anyOf/`))
  const repeated = new Set(errors.filter(({ keyword }) => keyword === 'anyOf').flatMap(branchesOf))
  return errors
    .filter((error) => error.keyword !== 'boolean' && !repeated.has(error))
    .map((error) => {
      const { allowedValues, additionalProperties, requiredProperties }: Facts = error.params
      const constants = branchesOf(error).filter(({ keyword }) => keyword === 'const')
      return {
        keyword: error.keyword,
        /** A number is a place in a list. */
        path: stepsOf(error).map((step) => (/^\d+$/.test(step) ? Number(step) : plain(step))),
        /** For messages that must not repeat names from outside. */
        shown: shownPath(error),
        reason: error.message ?? 'is not valid',
        /** What an enum, or a union of constants, accepts. */
        choices: allowedValues ?? constants.map(({ params }) => (params as Facts).allowedValue),
        /** Those that an object lacks, or that it has and must not have. */
        fields: additionalProperties ?? requiredProperties ?? [],
      }
    })
}

/** The path of an error. Names that are not in the schema came from outside, and become `*`. */
export function shownPath(error: Pick<SchemaError, 'instancePath' | 'schemaPath'>): string[] {
  const isKnown = (step: string) =>
    /^\d{1,5}$/.test(step) || error.schemaPath.includes(`/properties/${step}/`)
  return stepsOf(error).map((step) => (isKnown(step) ? plain(step) : '*'))
}

const stepsOf = ({ instancePath }: Pick<SchemaError, 'instancePath'>) => instancePath.split('/').slice(1)
const plain = (step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~')
