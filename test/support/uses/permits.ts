import type { HttpUse, Use } from '../../../src/domain/use.ts'
import { compileUse, judge } from '../../../src/proxy/rules/compiled-use.ts'
import { readPath } from '../../../src/proxy/rules/target.ts'
import type { Held } from '../../../src/proxy/types.ts'

/** Whether the proxy would let a request through with the credential that has these uses. */
export function permits(uses: readonly Use[], method: string, url: string): boolean {
  // Byte for byte: a parser of URLs would resolve dots and escapes.
  const [, origin = '', path = ''] = /^(https?:\/\/[^/]+)(\/[^?]*)/.exec(url) ?? []
  const read = readPath(path)
  const here = uses.filter((use): use is HttpUse => use.protocol === 'http' && isAt(use, origin))
  const compiled = here.flatMap((use) => compileUse({ use, held: {} as Held }) ?? [])
  return read !== null && compiled.some((use) => judge(use, method, read) === 'allowed')
}

function isAt({ origin }: HttpUse, asked: string): boolean {
  const [scheme = '', host = ''] = origin.split('//')
  return host.startsWith('*.')
    ? asked.startsWith(`${scheme}//`) && asked.endsWith(host.slice(1))
    : origin === asked
}
