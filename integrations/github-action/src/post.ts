import { endSession } from './end.ts'
import { failureText } from './failure.ts'
import { runner, say, stateOf } from './runner.ts'

/** The job is done, and should not fail for this: what cannot be ended now ends by itself, without its heartbeats. */
try {
  await endSession(runner, stateOf(runner, 'directory'))
} catch (error) {
  const left = 'What this job got ends when its heartbeats are missed.'
  say(runner, 'warning', `The run could not be ended: ${failureText(error)} ${left}`)
}
