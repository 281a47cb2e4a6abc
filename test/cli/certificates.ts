import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  BasicConstraintsExtension,
  cryptoProvider,
  PemConverter,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

cryptoProvider.set(webcrypto as unknown as Parameters<typeof cryptoProvider.set>[0])
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

export interface Authority {
  /** PEM file of the authority. */
  readonly caFile: string
  /** A certificate of it with its key, as files. `daysLeft` may be negative. */
  issue(wish: { name: string; dns?: string[]; ips?: string[]; daysLeft?: number }): Promise<{
    certFile: string
    keyFile: string
  }>
}

/** An authority of our own in a directory. */
export async function newAuthority(directory: string): Promise<Authority> {
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as never
  const ca = await X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Test Authority',
    notBefore: new Date(Date.now() - 30 * DAY_MS),
    notAfter: new Date(Date.now() + 30 * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [new BasicConstraintsExtension(true, 1, true)],
  })
  const caFile = join(directory, 'ca.pem')
  await writeFile(caFile, ca.toString('pem'))
  let serial = 1
  return {
    caFile,
    async issue({ name, dns = [], ips = [], daysLeft = 10 }) {
      serial += 1
      const own = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const certificate: X509Certificate = await X509CertificateGenerator.create({
        serialNumber: serial.toString(16).padStart(2, '0'),
        subject: `CN=${name}`,
        issuer: ca.subject,
        notBefore: new Date(Date.now() - 20 * DAY_MS),
        notAfter: new Date(Date.now() + daysLeft * DAY_MS),
        signingAlgorithm: ALGORITHM,
        publicKey: own.publicKey as never,
        signingKey: (keys as { privateKey: never }).privateKey,
        extensions: [
          new SubjectAlternativeNameExtension([
            ...dns.map((value) => ({ type: 'dns', value }) as const),
            ...ips.map((value) => ({ type: 'ip', value }) as const),
          ]),
        ],
      })
      const certFile = join(directory, `${name}.pem`)
      const keyFile = join(directory, `${name}.key`)
      await writeFile(certFile, certificate.toString('pem'))
      const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', own.privateKey)
      await writeFile(keyFile, PemConverter.encode(pkcs8, 'PRIVATE KEY'), { mode: 0o600 })
      return { certFile, keyFile }
    },
  }
}
