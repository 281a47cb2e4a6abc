import {
  fromContainerMetadata,
  fromHttp,
  fromNodeProviderChain,
  fromProcess,
  fromTokenFile,
} from '@aws-sdk/credential-providers'

/** A program that uses the SDK of AWS: prints who it takes itself for, once for each line of standard input. */
const PROVIDERS = {
  process: () => fromProcess({ profile: 'mayfly' }),
  chain: () => fromNodeProviderChain(),
  http: () => fromHttp(),
  metadata: () => fromContainerMetadata(),
  'token-file': () => fromTokenFile(),
}

const provider = PROVIDERS[process.argv[2] as keyof typeof PROVIDERS]()
try {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = await provider()
  console.log(JSON.stringify({ accessKeyId, secretAccessKey, sessionToken, expiration }))
} catch (error) {
  const { name, message } = error as Error
  console.log(JSON.stringify({ name, message, ...(error as object) }))
  process.exitCode = 1
}
