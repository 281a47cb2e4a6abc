import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificates {
  /** File of the authority. */
  readonly ca: string
  /** For 127.0.0.1, localhost, and what was named. */
  readonly server: { readonly cert: string; readonly key: string; readonly ca: string }
  /** Of `agent-client`. */
  readonly client: { readonly cert: string; readonly key: string }
}

/** An authority of its own, and certificates that it signed, in files of this directory. */
export function makeCertificates(directory: string, ...names: readonly string[]): Certificates {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  const start = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
  ]
  openssl(...start, '-subj', '/CN=tests', '-keyout', 'ca.key', '-out', 'ca.pem')
  const sign = (name: string, extension: string) => {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`]
    const signer = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', extension]
    openssl(
      ...start,
      '-subj',
      `/CN=agent-${name}`,
      ...signer,
      '-addext',
      'basicConstraints=CA:FALSE',
      ...files,
    )
    return { cert: read(`${name}.pem`), key: read(`${name}.key`) }
  }
  const dns = ['localhost', ...names].map((name) => `DNS:${name}`)
  return {
    ca: join(directory, 'ca.pem'),
    server: { ...sign('server', `subjectAltName=IP:127.0.0.1,${dns.join()}`), ca: read('ca.pem') },
    client: sign('client', 'extendedKeyUsage=clientAuth'),
  }
}
