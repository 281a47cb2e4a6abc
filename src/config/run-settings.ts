import { formatDuration, parseBoundedDuration } from '../domain/duration.ts'
import { DAY_MS, HEARTBEAT_MS, MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from '../domain/limits.ts'
import { duration } from './setting.ts'

/** Settings of runs. */
export const runs = {
  'runs.heartbeat': duration(
    {
      description:
        'How often a run says that it lives, unless it asks for another interval: 1s to 1h. After three missed heartbeats it ends, with its credentials.',
      default: formatDuration(HEARTBEAT_MS),
      'x-reload': true,
      'x-shared': true,
    },
    (given) => parseBoundedDuration(given, MIN_HEARTBEAT_MS, MAX_HEARTBEAT_MS),
  ),
  'runs.max': duration(
    {
      description: 'How long a run may live, at least 1s.',
      'x-default': 'no limit',
      'x-reload': true,
      'x-shared': true,
    },
    (given) => parseBoundedDuration(given, MIN_HEARTBEAT_MS, 36_500 * DAY_MS),
  ),
}
