// Searches and running sums: any span of time is answered by two look-ups, so that a frame costs by its pixels.

/** Returns the first index in [low, high) whose value is not below `value`. */
function lowerBound(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Like `lowerBound`, but fast if the result is near `low`. */
function boundFrom(array, value, low, high = array.length) {
  let step = 1;
  while (low + step < high && array[low + step] < value) {
    low += step;
    step *= 2;
  }
  return lowerBound(array, value, low, Math.min(high, low + step));
}

/** Groups items by key: items of key k are items[first[k]] to items[first[k + 1] - 1], in order. Unknown keys are left out. */
function grouped(keys, count) {
  const first = new Uint32Array(count + 1);
  for (let i = 0; i < keys.length; i++) {
    if (keys[i] >= 0 && keys[i] < count) {
      first[keys[i] + 1]++;
    }
  }
  for (let k = 0; k < count; k++) {
    first[k + 1] += first[k];
  }
  const items = new Uint32Array(first[count]);
  const next = first.slice();
  for (let i = 0; i < keys.length; i++) {
    if (keys[i] >= 0 && keys[i] < count) {
      items[next[keys[i]]++] = i;
    }
  }
  return { first, items };
}

function sorted(times) {
  for (let i = 1; i < times.length; i++) {
    if (times[i] < times[i - 1]) {
      return times.sort();
    }
  }
  return times;
}

/** A number over time: overlapping intervals, or a counter. */
class Steps {
  /** `levels[i]` holds from `times[i]` on; times ascend. */
  constructor(times, levels) {
    this.times = times;
    this.levels = levels;
    this.integral = new Float64Array(times.length);
    for (let i = 1; i < times.length; i++) {
      this.integral[i] = this.integral[i - 1] + levels[i - 1] * (times[i] - times[i - 1]);
    }
    this.cursor = 0;
  }

  /** Number of overlapping intervals. */
  static ofIntervals(starts, ends) {
    sorted(starts);
    sorted(ends);
    const count = starts.length;
    const times = new Float64Array(2 * count);
    const levels = new Float64Array(2 * count);
    for (let i = 0, j = 0, level = 0; j < count;) {
      const starting = i < count && starts[i] <= ends[j];
      level += starting ? 1 : -1;
      times[i + j] = starting ? starts[i] : ends[j];
      levels[i + j] = level;
      if (starting) {
        i++;
      } else {
        j++;
      }
    }
    return new Steps(times, levels);
  }

  rewind() {
    this.cursor = 0;
    return this;
  }

  /** Returns the integral up to a time, which must not be before that of the previous call. */
  upTo(time) {
    const { times } = this;
    if (times.length === 0 || time <= times[0]) {
      return 0;
    }
    this.cursor = boundFrom(times, time, this.cursor) - 1;
    return this.integral[this.cursor] + this.levels[this.cursor] * (time - times[this.cursor]);
  }

  levelAt(time) {
    const after = lowerBound(this.times, time + 0.5);
    return after === 0 ? 0 : this.levels[after - 1];
  }
}

const BLOCK = 64;

/** Maximum in any range of an array, found by the maxima of blocks. */
class Most {
  constructor(values) {
    this.values = values;
    this.blocks = new Float64Array(Math.ceil(values.length / BLOCK));
    for (let i = 0; i < values.length; i++) {
      const block = Math.floor(i / BLOCK);
      this.blocks[block] = Math.max(this.blocks[block], values[i]);
    }
  }

  in(low, high) {
    let most = 0;
    for (let i = low; i < high;) {
      if (i % BLOCK === 0 && i + BLOCK <= high) {
        most = Math.max(most, this.blocks[i / BLOCK]);
        i += BLOCK;
      } else {
        most = Math.max(most, this.values[i]);
        i++;
      }
    }
    return most;
  }
}

/** Events of several classes, counted for any range. */
class Events {
  /** `items` are rows of the trace in order of time. */
  constructor(items, times, classOf, classes) {
    this.items = items;
    this.times = times;
    this.classes = classes;
    this.counts = new Uint32Array((items.length + 1) * classes);
    for (let i = 0; i < items.length; i++) {
      for (let c = 0; c < classes; c++) {
        this.counts[(i + 1) * classes + c] = this.counts[i * classes + c];
      }
      this.counts[(i + 1) * classes + classOf(items[i])]++;
    }
  }

  count(low, high, c) {
    return this.counts[high * this.classes + c] - this.counts[low * this.classes + c];
  }
}

export { boundFrom, Events, grouped, lowerBound, Most, Steps };
