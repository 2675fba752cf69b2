/**
 * The names that an analyst's statement may use. Names new in a later engine are refused until they are added here: a new
 * function may read files, call other hosts or show memory, and the engine's own access rights do not cover all functions that
 * do (`file`). All in lower case.
 */

/** Whether a name before a parenthesis is a function, table function, parameterized view or type that only reads. */
export function isCallable(name: string): boolean {
  if (CALLABLE.has(name)) return true;
  if (name.length > NAME_CHARS_MAX) return false;
  for (let base = name; COMBINATOR.test(base); ) {
    base = base.replace(COMBINATOR, "");
    if (AGGREGATES.has(base)) return true;
  }
  return false;
}

/** Keywords that a parenthesis may follow. */
export const isBeforeParenthesis = (word: string) => KEYWORDS.has(word);

/** Tables of `system` that list what can be read, and reveal nothing about other users or the machine. */
export const isSystemTable = (name: string) => SYSTEM_TABLES.has(name);

/** Result formats that read no schema or template from a file and contact no other host. */
export const isResultFormat = (name: string) => FORMATS.has(name.toLowerCase());

const words = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().trim().split(/\s+/));

/** Including suffixes. */
const NAME_CHARS_MAX = 128;

const COMBINATOR =
  /(simplestate|ordefault|distinct|resample|foreach|argmin|argmax|ornull|tuple|merge|state|array|null|map|if)$/;

const KEYWORDS = words(`
  all and any apply array as ast between by case columns cross cube desc describe distinct else estimate except
  exists explain filter final from global group grouping having ilike in inner intersect interpolate interval is
  join left like limit not offset on or order outer over partition pipeline plan prewhere qualify replace right
  rollup sample select semi anti asof set sets some syntax table then to top tree union using values when where with
  step fill
`);

const SYSTEM_TABLES = words(`
  aggregate_function_combinators build_options codecs collations columns contributors current_roles
  data_skipping_indices data_type_families databases dictionaries enabled_roles formats functions keywords numbers
  numbers_mt one parts parts_columns settings table_engines table_functions tables time_zones zeros
`);

const FORMATS = words(`
  Arrow ArrowStream Avro BSONEachRow CSV CSVWithNames CSVWithNamesAndTypes JSON JSONColumns JSONColumnsWithMetadata
  JSONCompact JSONCompactColumns JSONCompactEachRow JSONCompactEachRowWithNames JSONCompactEachRowWithNamesAndTypes
  JSONCompactEachRowWithProgress JSONCompactStrings JSONCompactStringsEachRow JSONCompactStringsEachRowWithNames
  JSONCompactStringsEachRowWithNamesAndTypes JSONCompactStringsEachRowWithProgress JSONEachRow
  JSONEachRowWithProgress JSONL JSONLines JSONObjectEachRow JSONStrings JSONStringsEachRow
  JSONStringsEachRowWithProgress LineAsString Markdown MD MsgPack Native NDJSON Npy Null ORC Parquet Pretty
  PrettyCompact PrettyCompactMonoBlock PrettyCompactNoEscapes PrettyCompactNoEscapesMonoBlock PrettyJSONEachRow
  PrettyJSONLines PrettyMonoBlock PrettyNDJSON PrettyNoEscapes PrettyNoEscapesMonoBlock PrettySpace
  PrettySpaceMonoBlock PrettySpaceNoEscapes PrettySpaceNoEscapesMonoBlock Raw RawBLOB RawWithNames
  RawWithNamesAndTypes RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes SQLInsert TabSeparated
  TabSeparatedRaw TabSeparatedRawWithNames TabSeparatedRawWithNamesAndTypes TabSeparatedWithNames
  TabSeparatedWithNamesAndTypes TSKV TSV TSVRaw TSVRawWithNames TSVRawWithNamesAndTypes TSVWithNames
  TSVWithNamesAndTypes Values Vertical XML
`);

const TABLE_FUNCTIONS = `
  generateRandom generate_series generateSeries numbers numbers_mt values
`;

/** Parameterized views of the event store. */
const EVENT_STORE_VIEWS = `
  template_results time_to_deliver
`;

/** Functions with special syntax, which the engine does not list. */
const SPELLED = `
  cast columns date_add dateadd date_sub datesub datediff exists extract grouping position timestamp_add
  timestampadd timestamp_sub timestampsub timestampdiff trim
`;

const TYPES = `
  AggregateFunction Array BFloat16 BIGINT BINARY BIT BLOB bool Bool boolean BYTE BYTEA CHAR CLOB Date Date32
  DateTime DateTime32 DateTime64 DEC Decimal Decimal128 Decimal256 Decimal32 Decimal64 DOUBLE Dynamic Enum Enum16
  Enum8 FixedString FLOAT Float32 Float64 Geometry GEOMETRY INET4 INET6 INT INT1 Int128 Int16 Int256 Int32 Int64
  Int8 INTEGER IntervalDay IntervalHour IntervalMicrosecond IntervalMillisecond IntervalMinute IntervalMonth
  IntervalNanosecond IntervalQuarter IntervalSecond IntervalWeek IntervalYear IPv4 IPv6 JSON LineString LONGBLOB
  LONGTEXT LowCardinality Map MEDIUMBLOB MEDIUMINT MEDIUMTEXT MultiLineString MultiPolygon NCHAR Nested Nothing
  Nullable NUMERIC NVARCHAR Point Polygon QBit REAL Ring SIGNED SimpleAggregateFunction SINGLE SMALLINT String TEXT
  Time Time64 TIMESTAMP TINYBLOB TINYINT TINYTEXT Tuple UInt128 UInt16 UInt256 UInt32 UInt64 UInt8 UNSIGNED UUID
  VARBINARY VARCHAR VARCHAR2 Variant YEAR
`;

const NUMBERS = `
  abs acos acosh asin asinh atan atan2 atanh avg2 bitAnd bitCount bitHammingDistance bitmapAnd bitmapAndCardinality
  bitmapAndnot bitmapAndnotCardinality bitmapBuild bitmapCardinality bitmapContains bitmapHasAll bitmapHasAny
  bitmapMax bitmapMin bitmapOr bitmapOrCardinality bitmapSubsetInRange bitmapSubsetLimit bitmapToArray
  bitmapTransform bitmapXor bitmapXorCardinality bitNot bitOr bitRotateLeft bitRotateRight bitShiftLeft
  bitShiftRight bitSlice bitTest bitTestAll bitTestAny bitXor byteSwap cbrt ceil cos cosh degrees divide
  divideDecimal divideOrNull e erf erfc exp exp10 exp2 factorial financialInternalRateOfReturn
  financialInternalRateOfReturnExtended financialNetPresentValue financialNetPresentValueExtended floor fuzzBits gcd
  hypot ifNotFinite intDiv intDivOrNull intDivOrZero intExp10 intExp2 isFinite isInfinite isNaN isPrime
  isProbablePrime lcm lgamma log log10 log1p log2 max2 midpoint min2 minus modulo moduloLegacy moduloOrNull
  moduloOrZero multiply multiplyDecimal negate pi plus positiveModulo positiveModuloOrNull pow proportionsZTest
  radians rand rand64 randBernoulli randBinomial randCanonical randChiSquared randConstant randExponential
  randFisherF randLogNormal randNegativeBinomial randNormal randomFixedString randomPrintableASCII randomString
  randomStringUTF8 randPoisson randStudentT randUniform round roundAge roundBankers roundDown roundDuration
  roundToExp2 sigmoid sign sin sinh sqr sqrt subBitmap tan tanh tgamma trunc widthBucket
`;

const LOGIC = `
  and assumeNotNull clamp coalesce equals firstNonDefault globalIn globalNotIn globalNotNullIn globalNullIn greater
  greaterOrEquals greatest if ifNull in isDistinctFrom isNotDistinctFrom isNotNull isNull isNullable isZeroOrNull
  least less lessOrEquals multiIf not notEquals notIn notNullIn nullIf nullIn or toNullable xor
`;

const TEXT = `
  alphaTokens appendTrailingCharIfAbsent arrayStringConcat ascii base32Decode base32Encode base58Decode base58Encode
  base64Decode base64Encode base64URLDecode base64URLEncode basename bin bitmaskToArray bitmaskToList
  bitPositionsToArray byteHammingDistance caseFoldUTF8 char cityHash64 compareSubstrings concat
  concatAssumeInjective concatWithSeparator concatWithSeparatorAssumeInjective conv convertCharset countMatches
  countMatchesCaseInsensitive countSubstrings countSubstringsCaseInsensitive countSubstringsCaseInsensitiveUTF8
  CRC32 CRC32IEEE CRC64 cutFragment cutIPv6 cutQueryString cutQueryStringAndFragment cutToFirstSignificantSubdomain
  cutToFirstSignificantSubdomainCustom cutToFirstSignificantSubdomainCustomRFC
  cutToFirstSignificantSubdomainCustomWithWWW cutToFirstSignificantSubdomainCustomWithWWWRFC
  cutToFirstSignificantSubdomainRFC cutToFirstSignificantSubdomainWithWWW cutToFirstSignificantSubdomainWithWWWRFC
  cutURLParameter cutWWW damerauLevenshteinDistance decodeHTMLComponent decodeURLComponent decodeURLFormComponent
  decodeXMLComponent domain domainRFC domainWithoutWWW domainWithoutWWWRFC dynamicElement dynamicType editDistance
  editDistanceUTF8 encodeURLComponent encodeURLFormComponent encodeXMLComponent endsWith endsWithCaseInsensitive
  endsWithCaseInsensitiveUTF8 endsWithUTF8 extract extractAll extractAllGroupsHorizontal extractAllGroupsVertical
  extractGroups extractTextFromHTML extractURLParameter extractURLParameterNames extractURLParameters
  farmFingerprint64 farmHash64 firstLine firstSignificantSubdomain firstSignificantSubdomainCustom
  firstSignificantSubdomainCustomRFC firstSignificantSubdomainRFC format fragment gccMurmurHash halfMD5 hasAllTokens
  hasAnyTokens hasPhrase hasSubsequence hasSubsequenceCaseInsensitive hasSubsequenceCaseInsensitiveUTF8
  hasSubsequenceUTF8 hasToken hasTokenCaseInsensitive hasTokenCaseInsensitiveOrNull hasTokenOrNull hex hilbertDecode
  hilbertEncode hiveHash icebergHash ilike initcap initcapUTF8 intHash32 intHash64 IPv4CIDRToRange IPv4NumToString
  IPv4NumToStringClassC IPv4StringToNum IPv4StringToNumOrDefault IPv4StringToNumOrNull IPv4ToIPv6 IPv6CIDRToRange
  IPv6NumToString IPv6StringToNum IPv6StringToNumOrDefault IPv6StringToNumOrNull isDynamicElementInSharedData
  isIPAddressInRange isIPv4String isIPv6String isValidASCII isValidJSON isValidUTF8 jaroSimilarity
  jaroWinklerSimilarity javaHash javaHashUTF16LE JSON_EXISTS JSON_QUERY JSON_VALUE JSONAllPaths
  JSONAllPathsWithTypes JSONAllValues JSONArrayLength JSONDynamicPaths JSONDynamicPathsWithTypes JSONExtract
  JSONExtractArrayRaw JSONExtractArrayRawCaseInsensitive JSONExtractBool JSONExtractBoolCaseInsensitive
  JSONExtractCaseInsensitive JSONExtractFloat JSONExtractFloatCaseInsensitive JSONExtractInt
  JSONExtractIntCaseInsensitive JSONExtractKeys JSONExtractKeysAndValues JSONExtractKeysAndValuesCaseInsensitive
  JSONExtractKeysAndValuesRaw JSONExtractKeysAndValuesRawCaseInsensitive JSONExtractKeysCaseInsensitive
  JSONExtractRaw JSONExtractRawCaseInsensitive JSONExtractString JSONExtractStringCaseInsensitive JSONExtractUInt
  JSONExtractUIntCaseInsensitive JSONHas JSONKey JSONLength JSONMergePatch JSONSharedDataPaths
  JSONSharedDataPathsWithTypes JSONType jumpConsistentHash kafkaMurmurHash keccak256 kostikConsistentHash left
  leftPad leftPadUTF8 leftUTF8 lengthUTF8 like locate lower lowerUTF8 match MD4 MD5 metroHash64 mortonDecode
  mortonEncode multiFuzzyMatchAllIndices multiFuzzyMatchAny multiFuzzyMatchAnyIndex multiMatchAllIndices
  multiMatchAny multiMatchAnyIndex multiSearchAllPositions multiSearchAllPositionsCaseInsensitive
  multiSearchAllPositionsCaseInsensitiveUTF8 multiSearchAllPositionsUTF8 multiSearchAny
  multiSearchAnyCaseInsensitive multiSearchAnyCaseInsensitiveUTF8 multiSearchAnyUTF8 multiSearchFirstIndex
  multiSearchFirstIndexCaseInsensitive multiSearchFirstIndexCaseInsensitiveUTF8 multiSearchFirstIndexUTF8
  multiSearchFirstPosition multiSearchFirstPositionCaseInsensitive multiSearchFirstPositionCaseInsensitiveUTF8
  multiSearchFirstPositionUTF8 murmurHash2_32 murmurHash2_64 murmurHash3_128 murmurHash3_32 murmurHash3_64
  naturalSortKey netloc ngramDistance ngramDistanceCaseInsensitive ngramDistanceCaseInsensitiveUTF8
  ngramDistanceUTF8 ngramMinHash ngramMinHashArg ngramMinHashArgCaseInsensitive ngramMinHashArgCaseInsensitiveUTF8
  ngramMinHashArgUTF8 ngramMinHashCaseInsensitive ngramMinHashCaseInsensitiveUTF8 ngramMinHashUTF8 ngrams
  ngramSearch ngramSearchCaseInsensitive ngramSearchCaseInsensitiveUTF8 ngramSearchUTF8 ngramSimHash
  ngramSimHashCaseInsensitive ngramSimHashCaseInsensitiveUTF8 ngramSimHashUTF8 normalizeUTF8NFC normalizeUTF8NFD
  normalizeUTF8NFKC normalizeUTF8NFKCCasefold normalizeUTF8NFKD notILike notLike overlay overlayUTF8 path pathFull
  port portRFC position positionCaseInsensitive positionCaseInsensitiveUTF8 positionUTF8 prettyPrintJSON printf
  protocol queryString queryStringAndFragment regexpExtract regexpPosition regexpQuoteMeta removeDiacriticsUTF8
  repeat replaceAll replaceOne replaceRegexpAll replaceRegexpOne reverseBySeparator reverseUTF8 right rightPad
  rightPadUTF8 rightUTF8 RIPEMD160 SHA1 SHA224 SHA256 SHA384 SHA512 SHA512_256 simpleJSONExtractBool
  simpleJSONExtractFloat simpleJSONExtractInt simpleJSONExtractRaw simpleJSONExtractString simpleJSONExtractUInt
  simpleJSONHas sipHash128 sipHash128Keyed sipHash128Reference sipHash128ReferenceKeyed sipHash64 sipHash64Keyed
  soundex space sparseGrams sparseGramsHashes sparseGramsHashesUTF8 sparseGramsUTF8 splitByChar splitByNonAlpha
  splitByRegexp splitByString splitByWhitespace sqidDecode sqidEncode startsWith startsWithCaseInsensitive
  startsWithCaseInsensitiveUTF8 startsWithUTF8 stringBytesEntropy stringBytesUniq stringJaccardIndex
  stringJaccardIndexUTF8 substring substringIndex substringIndexUTF8 substringUTF8 toIPv4 toIPv4OrDefault
  toIPv4OrNull toIPv4OrZero toIPv6 toIPv6OrDefault toIPv6OrNull toIPv6OrZero toJSONString tokens
  tokensForLikePattern topLevelDomain topLevelDomainRFC toValidUTF8 translate translateUTF8 trimBoth trimLeft
  trimRight tryBase32Decode tryBase58Decode tryBase64Decode tryBase64URLDecode unbin unhex upper upperUTF8 URLHash
  URLHierarchy URLPathHierarchy wordShingleMinHash wordShingleMinHashArg wordShingleMinHashArgCaseInsensitive
  wordShingleMinHashArgCaseInsensitiveUTF8 wordShingleMinHashArgUTF8 wordShingleMinHashCaseInsensitive
  wordShingleMinHashCaseInsensitiveUTF8 wordShingleMinHashUTF8 wordShingleSimHash wordShingleSimHashCaseInsensitive
  wordShingleSimHashCaseInsensitiveUTF8 wordShingleSimHashUTF8 wyHash64 xxh3 xxh3_128 xxHash32 xxHash64
  xxHash64Spark
`;

const TIME = `
  addDate addDays addHours addInterval addMicroseconds addMilliseconds addMinutes addMonths addNanoseconds
  addQuarters addSeconds addTupleOfIntervals addWeeks addYears age changeDay changeHour changeMinute changeMonth
  changeSecond changeYear dateDiff dateName dateTime64ToSnowflakeID dateTimeToSnowflakeID dateTimeToUUIDv7 dateTrunc
  formatDateTime formatDateTimeInJodaSyntax fromDaysSinceYearZero fromDaysSinceYearZero32 fromModifiedJulianDay
  fromModifiedJulianDayOrNull fromUnixTimestamp fromUnixTimestampInJodaSyntax fromUTCTimestamp generateSnowflakeID
  generateUUIDv4 generateUUIDv7 localtime makeDate makeDate32 makeDateTime makeDateTime64 monthName now now64
  nowInBlock nowInBlock64 serverTimezone snowflakeIDToDateTime snowflakeIDToDateTime64 subDate subtractDays
  subtractHours subtractInterval subtractMicroseconds subtractMilliseconds subtractMinutes subtractMonths
  subtractNanoseconds subtractQuarters subtractSeconds subtractTupleOfIntervals subtractWeeks subtractYears timeDiff
  timeSlot timeSlots timestamp timezone timezoneOf timezoneOffset today toDayOfMonth toDayOfWeek toDayOfYear
  toDaysInMonth toDaysSinceYearZero toHour toISOWeek toISOYear toLastDayOfMonth toLastDayOfWeek toMicrosecond
  toMillisecond toMinute toModifiedJulianDay toModifiedJulianDayOrNull toMonday toMonth toMonthNumSinceEpoch
  toNanosecond toQuarter toRelativeDayNum toRelativeHourNum toRelativeMinuteNum toRelativeMonthNum
  toRelativeQuarterNum toRelativeSecondNum toRelativeWeekNum toRelativeYearNum toSecond toStartOfDay
  toStartOfFifteenMinutes toStartOfFiveMinutes toStartOfHour toStartOfInterval toStartOfISOYear toStartOfMicrosecond
  toStartOfMillisecond toStartOfMinute toStartOfMonth toStartOfNanosecond toStartOfQuarter toStartOfSecond
  toStartOfTenMinutes toStartOfWeek toStartOfYear toTimeWithFixedDate toTimezone toUnixTimestamp toUTCTimestamp
  toUUIDOrDefault toUUIDOrNull toWeek toYear toYearNumSinceEpoch toYearWeek toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss
  UTCTimestamp UUIDNumToString UUIDStringToNum UUIDToNum UUIDv7ToDateTime yesterday YYYYMMDDhhmmssToDateTime
  YYYYMMDDhhmmssToDateTime64 YYYYMMDDToDate YYYYMMDDToDate32
`;

const CONVERSIONS = `
  accurateCast accurateCastOrDefault accurateCastOrNull CAST DATE fromUnixTimestamp64Micro fromUnixTimestamp64Milli
  fromUnixTimestamp64Nano fromUnixTimestamp64Second parseDateTime parseDateTime32BestEffort
  parseDateTime32BestEffortOrNull parseDateTime32BestEffortOrZero parseDateTime64 parseDateTime64BestEffort
  parseDateTime64BestEffortOrNull parseDateTime64BestEffortOrZero parseDateTime64BestEffortUS
  parseDateTime64BestEffortUSOrNull parseDateTime64BestEffortUSOrZero parseDateTime64InJodaSyntax
  parseDateTime64InJodaSyntaxOrNull parseDateTime64InJodaSyntaxOrZero parseDateTime64OrNull parseDateTime64OrZero
  parseDateTimeBestEffort parseDateTimeBestEffortOrNull parseDateTimeBestEffortOrZero parseDateTimeBestEffortUS
  parseDateTimeBestEffortUSOrNull parseDateTimeBestEffortUSOrZero parseDateTimeInJodaSyntax
  parseDateTimeInJodaSyntaxOrNull parseDateTimeInJodaSyntaxOrZero parseDateTimeOrNull parseDateTimeOrZero
  reinterpret reinterpretAsDate reinterpretAsDateTime reinterpretAsFixedString reinterpretAsFloat32
  reinterpretAsFloat64 reinterpretAsInt128 reinterpretAsInt16 reinterpretAsInt256 reinterpretAsInt32
  reinterpretAsInt64 reinterpretAsInt8 reinterpretAsString reinterpretAsUInt128 reinterpretAsUInt16
  reinterpretAsUInt256 reinterpretAsUInt32 reinterpretAsUInt64 reinterpretAsUInt8 reinterpretAsUUID toBFloat16
  toBFloat16OrNull toBFloat16OrZero toBool toDate toDate32 toDate32OrDefault toDate32OrNull toDate32OrZero
  toDateOrDefault toDateOrNull toDateOrZero toDateTime toDateTime32 toDateTime64 toDateTime64OrDefault
  toDateTime64OrNull toDateTime64OrZero toDateTimeOrDefault toDateTimeOrNull toDateTimeOrZero toDecimal128
  toDecimal128OrDefault toDecimal128OrNull toDecimal128OrZero toDecimal256 toDecimal256OrDefault toDecimal256OrNull
  toDecimal256OrZero toDecimal32 toDecimal32OrDefault toDecimal32OrNull toDecimal32OrZero toDecimal64
  toDecimal64OrDefault toDecimal64OrNull toDecimal64OrZero toDecimalString toFixedString toFloat32
  toFloat32OrDefault toFloat32OrNull toFloat32OrZero toFloat64 toFloat64OrDefault toFloat64OrNull toFloat64OrZero
  toInt128 toInt128OrDefault toInt128OrNull toInt128OrZero toInt16 toInt16OrDefault toInt16OrNull toInt16OrZero
  toInt256 toInt256OrDefault toInt256OrNull toInt256OrZero toInt32 toInt32OrDefault toInt32OrNull toInt32OrZero
  toInt64 toInt64OrDefault toInt64OrNull toInt64OrZero toInt8 toInt8OrDefault toInt8OrNull toInt8OrZero toInterval
  toIntervalDay toIntervalHour toIntervalMicrosecond toIntervalMillisecond toIntervalMinute toIntervalMonth
  toIntervalNanosecond toIntervalQuarter toIntervalSecond toIntervalWeek toIntervalYear toLowCardinality toString
  toStringCutToZero toTime toTime64 toTime64OrNull toTime64OrZero toTimeOrNull toTimeOrZero toUInt128
  toUInt128OrDefault toUInt128OrNull toUInt128OrZero toUInt16 toUInt16OrDefault toUInt16OrNull toUInt16OrZero
  toUInt256 toUInt256OrDefault toUInt256OrNull toUInt256OrZero toUInt32 toUInt32OrDefault toUInt32OrNull
  toUInt32OrZero toUInt64 toUInt64OrDefault toUInt64OrNull toUInt64OrZero toUInt8 toUInt8OrDefault toUInt8OrNull
  toUInt8OrZero toUnixTimestamp64Micro toUnixTimestamp64Milli toUnixTimestamp64Nano toUnixTimestamp64Second toUUID
  toUUIDOrZero
`;

const COLLECTIONS = `
  array arrayAll arrayAUCPR arrayAutocorrelation arrayAvg arrayBottomK arrayCompact arrayConcat arrayCount
  arrayCumSum arrayCumSumNonNegative arrayDifference arrayDistinct arrayDotProduct arrayElement arrayElementOrNull
  arrayEnumerate arrayEnumerateDense arrayEnumerateDenseRanked arrayEnumerateUniq arrayEnumerateUniqRanked
  arrayExcept arrayExists arrayFill arrayFilter arrayFirst arrayFirstIndex arrayFirstOrNull arrayFlatten arrayFold
  arrayIntersect arrayJaccardIndex arrayJoin arrayLast arrayLastIndex arrayLastOrNull arrayLevenshteinDistance
  arrayLevenshteinDistanceWeighted arrayMap arrayMax arrayMin arrayNormalizedGini arrayPartialReverseSort
  arrayPartialSort arrayPopBack arrayPopFront arrayProduct arrayPushBack arrayPushFront arrayRandomSample
  arrayReduce arrayReduceInRanges arrayRemove arrayResize arrayReverse arrayReverseFill arrayReverseSort
  arrayReverseSplit arrayROCAUC arrayRotateLeft arrayRotateRight arrayShiftLeft arrayShiftRight arrayShingles
  arrayShuffle arraySimilarity arraySlice arraySort arraySplit arraySum arraySymmetricDifference arrayTopK
  arrayTranspose arrayUnion arrayUniq arrayWithConstant arrayZip arrayZipUnaligned cosineDistance countEqual
  dotProduct empty emptyArrayDate emptyArrayDateTime emptyArrayFloat32 emptyArrayFloat64 emptyArrayInt16
  emptyArrayInt32 emptyArrayInt64 emptyArrayInt8 emptyArrayString emptyArrayToSingle emptyArrayUInt16
  emptyArrayUInt32 emptyArrayUInt64 emptyArrayUInt8 extractKeyValuePairs extractKeyValuePairsWithEscaping
  flattenTuple has hasAll hasAny hasSubstr indexOf indexOfAssumeSorted L1Distance L1Norm L1Normalize L2Distance
  L2Norm L2Normalize L2SquaredDistance L2SquaredNorm length LinfDistance LinfNorm LinfNormalize LpDistance LpNorm
  LpNormalize map mapAdd mapAll mapApply mapConcat mapContainsKey mapContainsKeyLike mapContainsValue
  mapContainsValueLike mapExists mapExtractKeyLike mapExtractValueLike mapFilter mapFromArrays mapKeys
  mapPartialReverseSort mapPartialSort mapPopulateSeries mapReverseSort mapSort mapSubtract mapUpdate mapValues
  notEmpty range replicate reverse tuple tupleConcat tupleDivide tupleDivideByNumber tupleElement
  tupleHammingDistance tupleIntDiv tupleIntDivByNumber tupleIntDivOrZero tupleIntDivOrZeroByNumber tupleMinus
  tupleModulo tupleModuloByNumber tupleMultiply tupleMultiplyByNumber tupleNames tupleNegate tuplePlus
  tuplePositiveModuloByNumber tupleToNameValuePairs
`;

const OTHER_SPELLINGS = `
  array_remove array_to_string arrayAUC arrayPRAUC byteSlice CARDINALITY ceiling CHAR_LENGTH CHARACTER_LENGTH
  concat_ws curdate current_database current_date current_query_id current_schemas current_timestamp current_user
  DATABASE date_bin DATE_DIFF date_diff DATE_FORMAT DATE_TRUNC DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR distanceCosine
  distanceL1 distanceL2 distanceL2Squared distanceLinf distanceLp extractAllGroups flatten FORMAT_BYTES FROM_BASE64
  FROM_DAYS FROM_UNIXTIME from_utc_timestamp hasAllToken hasAnyToken hostname HOUR INET6_ATON INET6_NTOA INET_ATON
  INET_NTOA initial_query_id initial_query_start_time instr isASCII JSON_ARRAY_LENGTH jsonMergePatch LAST_DAY lcase
  levenshteinDistance levenshteinDistanceUTF8 ln localtimestamp lpad ltrim MAP_FROM_ARRAYS mapContains mapFromString
  MICROSECOND mid MILLISECOND MINUTE mismatches mod modOrNull MONTH NANOSECOND NATURAL_SORT_KEY normalizeL1
  normalizeL2 normalizeLinf normalizeLp normL1 normL2 normL2Squared normLinf normLp OCTET_LENGTH partitionID pmod
  pmodOrNull positive_modulo positive_modulo_or_null power QUARTER query_id rand32 REGEXP_EXTRACT regexp_instr
  REGEXP_MATCHES REGEXP_REPLACE REGEXP_SUBSTR regexpInstr removeAccentsUTF8 replace rpad rtrim scalarProduct SCHEMA
  SECOND serverTimeZone session_user splitByAlpha str_to_date str_to_map substr SUBSTRING_INDEX time_bucket
  TIMESTAMP_DIFF timestamp_diff timestampDiff timeZone timeZoneOf timeZoneOffset TO_BASE64 TO_DAYS TO_UNIXTIME
  to_utc_timestamp toStartOfFiveMinute toTimeZone trim truncate ucase unnest user UTC_timestamp vectorDifference
  vectorSum visitParamExtractBool visitParamExtractFloat visitParamExtractInt visitParamExtractRaw
  visitParamExtractString visitParamExtractUInt visitParamHas week width_bucket yandexConsistentHash YEAR yearweek
`;

/** Functions about the statement, its session and its values. */
const ABOUT = `
  authenticatedUser bar blockNumber blockSize byteSize connectionId countDigits currentDatabase currentProfiles
  currentQueryID currentRoles currentSchemas currentUser defaultProfiles defaultRoles defaultValueOfArgumentType
  defaultValueOfTypeName digits displayName dumpColumnStructure enabledProfiles enabledRoles errorCodeToName finalizeAggregation
  formatReadableDecimalSize formatReadableQuantity formatReadableSize formatReadableTimeDelta getSetting
  getSettingOrDefault getSizeOfEnumType getSubcolumn globalVariable hostName identity ignore indexHint
  initializeAggregation initialQueryID isConstant isDecimalOverflow lowCardinalityIndices lowCardinalityKeys
  materialize minSampleSizeContinuous minSampleSizeConversion neighbor normalizedQueryHash normalizeQuery
  parseReadableSize parseReadableSizeOrNull parseReadableSizeOrZero parseTimeDelta queryID revision
  rowNumberInAllBlocks rowNumberInBlock runningAccumulate runningConcurrency runningDifference
  runningDifferenceStartingWithFirstValue throwIf toColumnTypeName toTypeName transform uptime variantElement
  variantType version visibleWidth
`;

/** Each may also have the suffixes of `COMBINATOR`. */
const AGGREGATES = words(`
  analysisOfVariance anova any any_respect_nulls any_value any_value_respect_nulls anyHeavy anyLast
  anyLast_respect_nulls anyLastRespectNulls anyRespectNulls anyValueRespectNulls approx_top_count approx_top_k
  approx_top_sum argAndMax argAndMin argMax argMin array_agg array_concat_agg avg avgWeighted BIT_AND BIT_OR BIT_XOR
  boundingRatio categoricalInformationValue contingency corr corrMatrix corrStable count COVAR_POP COVAR_SAMP
  covarPop covarPopMatrix covarPopStable covarSamp covarSampMatrix covarSampStable cramersV cramersVBiasCorrected
  cume_dist deltaSum deltaSumTimestamp dense_rank denseRank distinctDynamicTypes distinctJSONPaths
  distinctJSONPathsAndTypes entropy exponentialMovingAverage exponentialTimeDecayedAvg exponentialTimeDecayedCount
  exponentialTimeDecayedMax exponentialTimeDecayedSum first_value first_value_respect_nulls firstValueRespectNulls
  group_concat groupArray groupArrayInsertAt groupArrayIntersect groupArrayLast groupArrayMovingAvg
  groupArrayMovingSum groupArraySample groupArraySorted groupBitAnd groupBitmap groupBitmapAnd groupBitmapOr
  groupBitmapXor groupBitOr groupBitXor groupConcat groupNumericIndexedVector groupUniqArray histogram
  intervalLengthSum kolmogorovSmirnovTest kurtPop kurtSamp lag lagInFrame last_value last_value_respect_nulls
  lastValueRespectNulls lead leadInFrame mannWhitneyUTest max max_by maxIntersections maxIntersectionsPosition
  maxMappedArrays meanZTest median medianBFloat16 medianBFloat16Weighted medianDD medianDeterministic medianExact
  medianExactHigh medianExactLow medianExactWeighted medianExactWeightedInterpolated medianGK
  medianInterpolatedWeighted medianTDigest medianTDigestWeighted medianTiming medianTimingWeighted min min_by
  minMappedArrays nonNegativeDerivative nth_value ntile percent_rank percentRank quantile quantileBFloat16
  quantileBFloat16Weighted quantileDD quantileDeterministic quantileExact quantileExactExclusive quantileExactHigh
  quantileExactInclusive quantileExactLow quantileExactWeighted quantileExactWeightedInterpolated quantileGK
  quantileInterpolatedWeighted quantilePrometheusHistogram quantiles quantilesBFloat16 quantilesBFloat16Weighted
  quantilesDD quantilesDeterministic quantilesExact quantilesExactExclusive quantilesExactHigh
  quantilesExactInclusive quantilesExactLow quantilesExactWeighted quantilesExactWeightedInterpolated quantilesGK
  quantilesInterpolatedWeighted quantilesPrometheusHistogram quantilesTDigest quantilesTDigestWeighted
  quantilesTiming quantilesTimingWeighted quantileTDigest quantileTDigestWeighted quantileTiming
  quantileTimingWeighted rank rankCorr retention row_number sequenceCount sequenceMatch sequenceMatchEvents
  sequenceNextNode simpleLinearRegression singleValueOrNull skewPop skewSamp sparkBar sparkbar STD STDDEV STDDEV_POP
  STDDEV_SAMP stddevPop stddevPopStable stddevSamp stddevSampStable string_agg studentTTest studentTTestOneSample
  sum sumCount sumKahan sumMapFiltered sumMapFilteredWithOverflow sumMappedArrays sumMapWithOverflow sumWithOverflow
  theilsU timeSeriesChangesToGrid timeSeriesDeltaToGrid timeSeriesDerivToGrid timeSeriesGroupArray
  timeSeriesIncreaseToGrid timeSeriesInstantDeltaToGrid timeSeriesInstantRateToGrid timeSeriesLastToGrid
  timeSeriesLastTwoSamples timeSeriesPredictLinearToGrid timeSeriesRateToGrid timeSeriesResampleToGridWithStaleness
  timeSeriesResetsToGrid topK topKWeighted uniq uniqCombined uniqCombined64 uniqExact uniqHLL12 uniqUpTo VAR_POP
  VAR_SAMP varPop varPopStable varSamp varSampStable welchTTest windowFunnel
`);

const CALLABLE: ReadonlySet<string> = new Set([
  ...words(
    [TABLE_FUNCTIONS, EVENT_STORE_VIEWS, SPELLED, TYPES, NUMBERS, LOGIC, TEXT, TIME, CONVERSIONS, COLLECTIONS].join(
      " ",
    ),
  ),
  ...words([OTHER_SPELLINGS, ABOUT].join(" ")),
  ...AGGREGATES,
]);
