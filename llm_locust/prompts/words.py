"""Short, common English words: with a blank before it, each is one token in the usual vocabularies.

`Ruler` checks that against the tokenizer at hand and drops those that are not.
"""

WORDS: tuple[str, ...] = tuple(
    """
    able about above across act add after again age ago agree air all allow almost alone along also always am among
    and another answer any appear apply area arm around art as ask at attack author away baby back bad bag ball bank
    bar base be bear beat because become bed before begin behind believe best better between beyond big bill bit
    black blood blue board body book born both box boy break bring brother build business but buy by call camera can
    car card care carry case catch cause cell center century certain chair chance change charge check child choice
    church city civil claim class clear close coach cold color come common company compare computer concern
    condition contain continue control cost could country couple course court cover create cultural culture cup
    current cut dark data day dead deal death decade decide deep degree design despite develop die difference
    different dinner direction director discover discuss do doctor dog door down draw dream drive drop drug during
    each early east easy eat edge effect effort eight either else employee end energy enjoy enough enter entire
    especially even evening event ever every evidence exactly example eye face fact fail fall family far fast father
    fear feel few field fight figure fill film final find fine finger finish fire firm first fish five floor fly
    focus follow food foot for force foreign forget form former forward four free friend from front full fund future
    game garden gas general get girl give glass go goal good great green ground group grow growth guess gun guy hair
    half hand hang happen happy hard have he head health hear heart heat heavy help her here high him his history
    hit hold home hope hospital hot hotel hour house how huge human hundred husband idea identify if image imagine
    impact important improve in include increase indeed industry inside instead interest into issue it item its job
    join just keep key kid kill kind kitchen know land language large last late later laugh law lawyer lay lead
    leader learn least leave left leg legal less let letter level lie life light like likely line list listen little
    live local long look lose loss lot love low machine main maintain major make man manage many market marriage
    matter may maybe me mean measure media medical meet meeting member memory mention message method middle might
    military million mind minute miss mission model modern moment money month more morning most mother mouth move
    movement movie much music must my name nation natural nature near nearly need network never new news next nice
    night no none nor north not note nothing notice now number occur of off offer office often oil old on once one
    only onto open option or order other our out outside over own owner page pain paper parent part party pass past
    pattern pay peace people per perhaps period person phone pick picture piece place plan plant play player point
    police policy poor popular position possible power practice prepare present president pressure pretty prevent
    price private problem process produce product program project property protect prove provide public pull purpose
    push put quality question quickly quite race radio raise range rate rather reach read ready real reality realize
    really reason receive recent record red reduce region relate remain remember remove report represent require
    research rest result return reveal rich right rise risk road rock role room rule run safe same save say scene
    school science score sea season seat second section security see seek seem sell send senior sense series serious
    serve service set seven several shake share she shoot short shot should show side sign similar simple since sing
    single sister sit site six size skill skin small so social society some son song soon sort sound source south
    space speak special speech spend sport spring staff stage stand standard star start state station stay step
    still stock stop store story street strong student study stuff style subject success such suddenly suffer
    suggest summer support sure surface system table take talk task tax teach teacher team tell ten tend term test
    than thank that the their them then theory there these they thing think third this those though thought three
    through throw time to today together too top total tough toward town trade training travel treat treatment tree
    trial trip trouble true truth try turn two type under understand unit until up upon us use usually value various
    very view visit voice vote wait walk wall want war watch water way we weapon wear week weight well west what
    when where which while white who whole whom whose why wide wife will win wind window wish with within without
    woman wonder word work worker world worry would write wrong yard year yes yet you young your
    """.split()
)
