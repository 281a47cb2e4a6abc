import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, rootCertificates } from 'node:tls'
import { ROOT_FILES } from './forward-variables.ts'

type Env = Readonly<Record<string, string | undefined>>

const CERTIFICATE = /-----BEGIN CERTIFICATE-----\r?\n[A-Za-z0-9+/=\r\n]+-----END CERTIFICATE-----/g
const MAX_FILE = 8 * 1024 * 1024

/**
 * Writes the roots that the child trusts so far, and the authority of the run, to a new file. Returns its path. `directory` is the
 * run's own, of mode 0700. `env`: the environment that names further roots, as of a proxy of the company.
 */
export async function writeBundle(directory: string, certificate: string, env: Env): Promise<string> {
  const named = await Promise.all([...new Set(ROOT_FILES.map((name) => env[name]))].map(certificatesIn))
  const all = new Set([...systemRoots(), ...named.flat(), ...findCertificates(certificate)])
  const path = join(directory, `roots-${randomBytes(4).toString('hex')}.pem`)
  await writeFile(path, `${[...all].join('\n')}\n`, { flag: 'wx', mode: 0o600 })
  return path
}

/** Those of the system; where it has none, as in a small container, Mozilla's. */
function systemRoots(): readonly string[] {
  const own = getCACertificates('system').flatMap(findCertificates)
  return own.length > 0 ? own : rootCertificates.flatMap(findCertificates)
}

/** A file that cannot be read gives nothing: its programs would fail without us, too. */
async function certificatesIn(path: string | undefined): Promise<string[]> {
  if (path === undefined || path === '') return []
  try {
    const text = await readFile(path, 'latin1')
    return text.length > MAX_FILE ? [] : findCertificates(text)
  } catch {
    return []
  }
}

/** Comments between certificates are left out, so that each is there once. */
function findCertificates(text: string): string[] {
  return [...text.matchAll(CERTIFICATE)].map(([found]) => found.replaceAll('\r', ''))
}
