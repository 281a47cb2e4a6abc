/** The document with each `$ref` replaced by what it names. There are no cycles. */
export function withoutRefs(document: object): object {
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve)
    if (typeof value !== 'object' || value === null) return value
    const ref: unknown = Reflect.get(value, '$ref')
    if (typeof ref === 'string') return resolve(targetOf(document, ref))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one)]))
  }
  return resolve(document) as object
}

function targetOf(document: object, ref: string): unknown {
  const path = ref.replace('#/', '').split('/')
  return path.reduce((value: unknown, key) => Reflect.get(value as object, key), document)
}
