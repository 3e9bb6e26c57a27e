import _ from 'lodash'
import { use } from '../lib/use.mjs'

export default use('lodash', 'groups a list', { a: [1, 3], b: [2] }, () =>
  _.mapValues(
    _.groupBy(
      [
        ['a', 1],
        ['b', 2],
        ['a', 3],
      ],
      '0',
    ),
    (pairs) => pairs.map(([, value]) => value),
  ),
)
